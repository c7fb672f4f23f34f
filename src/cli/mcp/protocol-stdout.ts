import { Writable } from 'node:stream';

/**
 * Keeps standard output for the protocol: whatever else this process, or a tool that it works on, writes
 * there goes to standard error from now on. @returns where the protocol is to be written
 */
export function takeStdout(): Writable {
  const own = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _encoding, done) => void own(chunk, () => done()),
  });
}
