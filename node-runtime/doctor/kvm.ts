/**
 * Whether KVM really runs code. The device may exist where guests do not run (nested virtualisation without hardware support), so
 * the probe makes a machine with one page of memory, enters it in real mode and expects it to halt.
 */
import { closeSync, constants, openSync } from 'node:fs';
import koffi from 'koffi';
import { DOCTOR_LIMITS } from './limits.ts';
import { checked } from './syscalls.ts';

const libc = koffi.load('libc.so.6');
const ioctlLong = libc.func('int ioctl(int fd, unsigned long request, uint64_t argument)') as (
  fd: number,
  request: number,
  argument: bigint | number,
) => number;
const ioctlBuffer = libc.func('int ioctl(int fd, unsigned long request, void *argument)') as (fd: number, request: number, argument: Buffer) => number;
const mmap = libc.func('uint64_t mmap(uint64_t address, size_t length, int protection, int flags, int fd, int64_t offset)') as (
  ...values: number[]
) => number | bigint;
const munmap = libc.func('int munmap(uint64_t address, size_t length)') as (address: number | bigint, length: number) => number;
const copyIn = libc.func('void *memcpy(uint64_t to, const void *from, size_t size)') as (to: number | bigint, from: Buffer, size: number) => unknown;
const copyOut = libc.func('void *memcpy(void *to, uint64_t from, size_t size)') as (to: Buffer, from: number | bigint, size: number) => unknown;

const KVM = {
  getApiVersion: 0xae00,
  createVm: 0xae01,
  vcpuMmapSize: 0xae04,
  createVcpu: 0xae41,
  run: 0xae80,
  setRegs: 0x4090_ae82,
  getSregs: 0x8138_ae83,
  setSregs: 0x4138_ae84,
  setMemory: 0x4020_ae46,
} as const;
const PAGE = 4_096;
const CODE_AT = 0x1000;
const HLT = 0xf4;
const EXIT_HLT = 5;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_PRIVATE_ANONYMOUS = 0x22;

/** `halted`: it ran. `other`: KVM refused or the guest did something else. `hung`: it never came back. Throws when KVM is absent. */
export const tryKvm = async (): Promise<'halted' | 'other' | 'hung'> => {
  const fds: number[] = [];
  const keep = (fd: number): number => {
    fds.push(fd);
    return fd;
  };
  const unmap: (() => void)[] = [];
  const map = (length: number, flags: number, fd: number): number | bigint => {
    const address = mmap(0, length, PROT_READ_WRITE, flags, fd, 0);
    if (BigInt(address) === 0xffff_ffff_ffff_ffffn) throw new Error('mmap failed');
    unmap.push(() => munmap(address, length));
    return address;
  };
  const kvm = keep(openSync('/dev/kvm', constants.O_RDWR));
  let hung = false;
  try {
    checked('KVM_GET_API_VERSION', ioctlLong(kvm, KVM.getApiVersion, 0));
    const vm = keep(checked('KVM_CREATE_VM', ioctlLong(kvm, KVM.createVm, 0)));
    const page = map(PAGE, MAP_PRIVATE_ANONYMOUS, -1);
    copyIn(page, Buffer.from([HLT]), 1);
    checked('KVM_SET_USER_MEMORY_REGION', ioctlBuffer(vm, KVM.setMemory, memoryRegion(BigInt(page))));
    const vcpu = keep(checked('KVM_CREATE_VCPU', ioctlLong(vm, KVM.createVcpu, 0)));
    const shared = map(checked('KVM_GET_VCPU_MMAP_SIZE', ioctlLong(kvm, KVM.vcpuMmapSize, 0)), MAP_SHARED, vcpu);
    startAtCode(vcpu);
    const answer = await enter(vcpu);
    hung = answer === 'hung';
    if (answer !== 'returned') return answer;
    const exitReason = Buffer.alloc(4);
    copyOut(exitReason, BigInt(shared) + 8n, 4); // struct kvm_run: exit_reason
    return exitReason.readUInt32LE(0) === EXIT_HLT ? 'halted' : 'other';
  } finally {
    // A guest that hangs still uses them; they end with the process.
    if (!hung) for (const undo of unmap) undo();
    if (!hung) for (const fd of fds.reverse()) closeSync(fd);
  }
};

const memoryRegion = (hostAddress: bigint): Buffer => {
  const region = Buffer.alloc(32); // struct kvm_userspace_memory_region
  region.writeBigUInt64LE(BigInt(CODE_AT), 8);
  region.writeBigUInt64LE(BigInt(PAGE), 16);
  region.writeBigUInt64LE(hostAddress, 24);
  return region;
};

/** Real mode, code segment at 0, instruction pointer at the code. */
const startAtCode = (vcpu: number): void => {
  const sregs = Buffer.alloc(312); // struct kvm_sregs; it begins with the code segment: base u64, limit u32, selector u16
  checked('KVM_GET_SREGS', ioctlBuffer(vcpu, KVM.getSregs, sregs));
  sregs.writeBigUInt64LE(0n, 0);
  sregs.writeUInt16LE(0, 12);
  checked('KVM_SET_SREGS', ioctlBuffer(vcpu, KVM.setSregs, sregs));
  const regs = Buffer.alloc(144); // struct kvm_regs: sixteen registers, rip, rflags
  regs.writeBigUInt64LE(BigInt(CODE_AT), 128);
  regs.writeBigUInt64LE(2n, 136);
  checked('KVM_SET_REGS', ioctlBuffer(vcpu, KVM.setRegs, regs));
};

/** Enters the guest on another thread, so that one that never halts can be given up. */
const enter = (vcpu: number): Promise<'returned' | 'other' | 'hung'> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve('hung'), DOCTOR_LIMITS.guestTimeoutMs);
    (ioctlLong as unknown as { async: (...values: unknown[]) => void }).async(vcpu, KVM.run, 0, (error: unknown, result: number) => {
      clearTimeout(timer);
      resolve(!error && result === 0 ? 'returned' : 'other');
    });
  });
