import { describe, expect, test } from 'vitest';
import { aptOptions, parseOsRelease, parseTargets, sourcesFor } from './host-apt.ts';

const debian = { id: 'debian', codename: 'bookworm' };
const target = (uri: string, release: string, component: string, origin: string) => [uri, release, component, origin].join('\t');
const LISTING = [
  target('http://mirror.test/debian/', 'bookworm', 'main', 'Debian'),
  target('http://mirror.test/debian/', 'bookworm', 'main', 'Debian'),
  target('http://mirror.test/debian/', 'bookworm', 'contrib', 'Debian'),
  target('http://mirror.test/debian/', 'bookworm-updates', 'main', 'Debian'),
  target('http://mirror.test/security/', 'bookworm-security', 'main', 'Debian'),
  target('http://vendor.test/node/', 'nodistro', 'main', 'Vendor'),
  target('http://vendor.test/db/', 'bookworm-vendor', 'main', 'Vendor'),
  target('http://vendor.test/tool/', 'bookworm', 'main', 'Vendor'),
  '',
].join('\n');

describe("the host's apt configuration", () => {
  test("gives the distribution's own archives once each, with updates and security fixes", () => {
    expect(sourcesFor('bookworm', debian, parseTargets(LISTING))).toEqual([
      'deb http://mirror.test/debian/ bookworm main',
      'deb http://mirror.test/debian/ bookworm-updates main',
      'deb http://mirror.test/security/ bookworm-security main',
    ]);
  });

  test('serves another release from the same mirrors', () => {
    expect(sourcesFor('trixie', debian, parseTargets(LISTING))).toEqual([
      'deb http://mirror.test/debian/ trixie main',
      'deb http://mirror.test/debian/ trixie-updates main',
      'deb http://mirror.test/security/ trixie-security main',
    ]);
  });

  test('knows its archives by their release where apt has not read their origin yet', () => {
    const unread = parseTargets(
      [target('http://mirror.test/debian/', 'bookworm', 'main', ''), target('http://mirror.test/x/', 'bookworm', 'main', '$(ORIGIN)')].join('\n'),
    );
    expect(sourcesFor('bookworm', debian, unread)).toHaveLength(2);
  });

  test('passes on how to reach mirrors and nothing else', () => {
    const dump = [
      'APT::Architecture "amd64";',
      'Acquire "";',
      'Acquire::http "";',
      'Acquire::http::Proxy "http://proxy.test:3128/";',
      'Acquire::Check-Valid-Until "false";',
      'DPkg::Post-Invoke:: "rm x";',
    ];
    expect(aptOptions(dump.join('\n'))).toEqual(['Acquire::http::Proxy "http://proxy.test:3128/";', 'Acquire::Check-Valid-Until "false";']);
  });

  test('reads the release from os-release, quoted or not', () => {
    expect(parseOsRelease('PRETTY_NAME="Debian GNU/Linux 12"\nVERSION_CODENAME=bookworm\nID=debian\n')).toEqual(debian);
    expect(parseOsRelease('ID="other"\nVERSION_CODENAME="x y"\n')).toEqual({ id: 'other', codename: 'x y' });
    expect(parseOsRelease('')).toEqual({ id: '', codename: '' });
  });
});
