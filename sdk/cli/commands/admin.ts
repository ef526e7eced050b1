/** `dsec project|principal|credential|whoami`: who may do what, and how much. */
import { writeFileSync } from 'node:fs';
import type { Command as Cli } from 'commander';
import { ACTIONS, type Action, PrincipalKind, Role } from '#bus/project/policy.ts';
import { QUOTA_KEYS } from '#bus/project/quota.ts';
import type { DsecClient } from '../../client.ts';
import { amountsOf, amountsText } from '../amounts.ts';
import { printJson, printLine, printTable, TablePrinter, time } from '../output.ts';
import { collect, numberOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type LimitFlags = CommonFlags & { readonly limit?: readonly string[] };
type GrantFlags = CommonFlags & { readonly role?: string; readonly action?: readonly string[] };
type IssueFlags = CommonFlags & { readonly life?: string; readonly type?: string; readonly out?: string };

const LIMIT_HELP = `amount it may use, repeatable: ${QUOTA_KEYS.slice(0, 4).join(', ')}, or of one backend (container.sandboxes)`;

/** Adds the commands about projects and rights. */
export const registerAdmin = (program: Cli): void => {
  registerProjects(program.command('project').description('projects: make, look, divide the quota, grant rights'));
  registerPrincipals(program.command('principal').description('people, services and agents of a project'));
  registerCredentials(program.command('credential').description('what a principal proves itself with'));
  withCommonOptions(
    program
      .command('whoami')
      .description('who these credentials are, and what they may do here')
      .addHelpText('after', '\nExamples:\n  dsec whoami\n  DSEC_CONTEXT=bot.json dsec whoami --json\n'),
  ).action((flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const me = await dsec.admin.whoami();
      if (flags.json) await printJson(me);
      else
        await printTable(
          ['PRINCIPAL', me.principal],
          [
            ['kind', me.kind],
            ['project', me.project],
            ['may', me.actions.join(' ') || 'nothing'],
            ['credential', me.credential],
            ['expires', me.expiresAt === null ? 'never' : time(me.expiresAt)],
          ],
        );
      return 0;
    }),
  );
};

const registerProjects = (project: Cli): void => {
  withCommonOptions(
    project
      .command('create')
      .description('make a project below this one')
      .argument('<name>', 'unique on the platform')
      .option('--limit <key=amount>', LIMIT_HELP, collect)
      .addHelpText('after', '\nExample:\n  dsec project create team-a --limit sandboxes=40 --limit memoryMiB=65536\n'),
  ).action((name: string, flags: LimitFlags) =>
    act(flags, async (dsec) => done(flags, `created ${name}`, dsec.admin.createProject(name, amountsOf('limit', QUOTA_KEYS, flags.limit)))),
  );
  withCommonOptions(project.command('ls').description('this project and those below it')).action((flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(['PROJECT', 'PARENT', 'LIMITS']);
      for await (const one of dsec.admin.listProjects()) {
        if (flags.json) await printJson(one);
        else await table.add([one.name, one.parent, amountsText(one.limits)]);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
  withCommonOptions(project.command('show').description('quota, use and grants of this project')).action((flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const view = await dsec.admin.getProject();
      if (flags.json) await printJson(view);
      else
        await printTable(
          ['PROJECT', view.name],
          [
            ['below', view.ancestors.join(' < ') || 'nothing: it is a root'],
            ['limits', amountsText(view.limits)],
            ['used', amountsText(view.used)],
            ['left, with those above', amountsText(view.effective)],
            ['projects below', view.children.join(' ') || 'none'],
            ...view.grants.map(({ principal, role, actions }) => [principal, [role, ...actions].filter(Boolean).join(' ')]),
          ],
        );
      return 0;
    }),
  );
  withCommonOptions(
    project
      .command('quota')
      .description('set the limits of a project below this one; those that are not named are not limited')
      .argument('<name>', 'the project')
      .option('--limit <key=amount>', LIMIT_HELP, collect)
      .addHelpText('after', '\nExamples:\n  dsec project quota team-a --limit sandboxes=20\n  dsec project quota team-a   (no limits of its own)\n'),
  ).action((name: string, flags: LimitFlags) =>
    act(flags, async (dsec) => done(flags, `set the quota of ${name}`, dsec.admin.setQuota(name, amountsOf('limit', QUOTA_KEYS, flags.limit)))),
  );
  withCommonOptions(
    project
      .command('grant')
      .description('let a principal do something in this project and below')
      .argument('<principal>', '<name>, or <project>/<name> of another project')
      .option('--role <role>', Role.options.join(', '))
      .option('--action <action>', `a single action, repeatable: ${ACTIONS.join(', ')}`, collect)
      .addHelpText('after', '\nExamples:\n  dsec project grant bot --role viewer\n  dsec project grant team-a/bot --role runner --action audit.read\n'),
  ).action((principal: string, flags: GrantFlags) =>
    act(flags, async (dsec) =>
      done(
        flags,
        `granted to ${principalIn(dsec, principal)}`,
        dsec.admin.grant(principalIn(dsec, principal), { role: flags.role as Role | undefined, actions: flags.action as Action[] | undefined }),
      ),
    ),
  );
  withCommonOptions(
    project
      .command('revoke')
      .description('take back everything granted here to a principal')
      .argument('<principal>', '<name>, or <project>/<name> of another project'),
  ).action((principal: string, flags: CommonFlags) =>
    act(flags, async (dsec) => done(flags, `revoked from ${principalIn(dsec, principal)}`, dsec.admin.revoke(principalIn(dsec, principal)))),
  );
};

/** A name without a project is one of this project. */
const principalIn = (dsec: DsecClient, name: string): string => (name.includes('/') ? name : `${dsec.project}/${name}`);

const registerPrincipals = (principal: Cli): void => {
  withCommonOptions(
    principal
      .command('create')
      .description('add a principal to this project; it may do nothing until something is granted')
      .argument('<name>')
      .option('--kind <kind>', PrincipalKind.options.join(', '), 'user')
      .addHelpText('after', '\nExample:\n  dsec principal create bot --kind agent\n'),
  ).action((name: string, flags: CommonFlags & { kind?: string }) =>
    act(flags, async (dsec) => done(flags, `created ${dsec.project}/${name}`, dsec.admin.createPrincipal(name, (flags.kind ?? 'user') as PrincipalKind))),
  );
  withCommonOptions(principal.command('rm').description('remove a principal with all its credentials').argument('<name>')).action(
    (name: string, flags: CommonFlags) => act(flags, async (dsec) => done(flags, `removed ${dsec.project}/${name}`, dsec.admin.removePrincipal(name))),
  );
  withCommonOptions(principal.command('ls').description('principals of this project, what they may do, their credentials')).action((flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(['PRINCIPAL', 'KIND', 'MAY', 'CREDENTIALS']);
      for (const one of await dsec.admin.listPrincipals()) {
        if (flags.json) await printJson(one);
        else await table.add([one.id, one.kind, one.actions.join(' ') || 'nothing', one.credentials.map(({ id }) => id).join(' ')]);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};

const registerCredentials = (credential: Cli): void => {
  withCommonOptions(
    credential
      .command('issue')
      .description('make a credential; prints a context file that nobody can print again')
      .argument('<principal>', 'name in this project')
      .option('--life <seconds>', 'how long it is good for; for ever when left out')
      .option('--type <type>', 'nkey (signs, nothing secret travels) or secret', 'nkey')
      .option('--out <file>', 'write the context file here, readable by its owner only')
      .addHelpText('after', '\nExamples:\n  dsec credential issue bot --life 86400 --out bot.json\n  DSEC_CONTEXT=bot.json dsec whoami\n'),
  ).action((principal: string, flags: IssueFlags) =>
    act(flags, async (dsec) => {
      const type = flags.type === 'secret' ? 'secret' : 'nkey';
      const { id, expiresAt, context } = await dsec.admin.issueCredential(principal, { lifeSeconds: numberOf('life', flags.life), type });
      if (!flags.out) await printLine(JSON.stringify(context, null, flags.json ? undefined : 2));
      else {
        writeFileSync(flags.out, `${JSON.stringify(context, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
        if (flags.json) await printJson({ id, expiresAt, file: flags.out });
        else await printLine(`${id} of ${dsec.project}/${principal} is in ${flags.out}`);
      }
      return 0;
    }),
  );
  withCommonOptions(credential.command('revoke').description('end a credential; its connections are closed').argument('<id>', 'cr-…')).action(
    (id: string, flags: CommonFlags) => act(flags, async (dsec) => done(flags, `revoked ${id}`, dsec.admin.revokeCredential(id))),
  );
};

const done = async (flags: CommonFlags, what: string, work: Promise<void>): Promise<number> => {
  await work;
  if (flags.json) await printJson({ done: what });
  else await printLine(what);
  return 0;
};
