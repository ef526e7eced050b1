import { existsSync } from 'node:fs';
import { arch } from 'node:process';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { read } from '../helpers.ts';
import { tryKvm } from '../kvm.ts';

const DETAIL = { other: 'the device is there, but a guest does not run on it', hung: 'the device is there, but a guest never returns from it' } as const;

export const VIRTUAL_MACHINE_CHECKS: readonly Check[] = [
  {
    name: 'KVM',
    group: 'virtual machines',
    required: false,
    usedFor: 'microVM and VM sandboxes',
    cost: 'virtual machines run several times slower',
    fallback: 'emulation (TCG); containers do not need it',
    probe: async () => {
      if (!existsSync('/dev/kvm')) return absent();
      if (arch !== 'x64') return limited('the device is there; running a guest is tried on x86-64 only');
      const answer = await tryKvm();
      if (answer !== 'halted') return limited(DETAIL[answer]);
      // Without the processor's own support KVM is a software substitute that ordinary guest kernels do not boot on.
      return /^flags\s*:.*\b(vmx|svm)\b/m.test(read('/proc/cpuinfo') ?? '')
        ? present('a guest ran')
        : limited('a guest of one instruction ran, but the processor shows no virtualisation of its own');
    },
  },
  {
    name: 'vsock for guests',
    group: 'virtual machines',
    required: false,
    usedFor: 'the channel to the agent in a guest',
    cost: 'another channel is needed',
    fallback: 'virtio-serial',
    probe: () => presentIf(existsSync('/dev/vhost-vsock')),
  },
];
