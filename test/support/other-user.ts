import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/** User id of `nobody`, on Linux and elsewhere. */
export const NOBODY = 65_534;

/** Only root can start a process of another user. */
export const mayBeOther = process.getuid?.() === 0;
if (!mayBeOther) {
  process.stderr.write('not run as root: tests with a process of another user are left out\n');
}

/**
 * Listens on a port of 127.0.0.1 (0: any), prints it, and forwards every connection to `target`.
 */
const PROXY = `
  const net = require('node:net');
  const [port, target] = process.argv.slice(1);
  net.createServer((socket) => {
    const other = net.connect(Number(target), '127.0.0.1');
    socket.on('error', () => other.destroy()).pipe(other).on('error', () => socket.destroy()).pipe(socket);
  }).listen(Number(port), '127.0.0.1', function () { console.log(this.address().port); });`;

/**
 * A process of another user that relays to a server, as an eavesdropper would start it. `words` end
 * its command line.
 */
export async function proxyOfOther(
  target: number,
  { port = 0, words = [] }: { port?: number; words?: readonly string[] } = {},
): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, ['-e', PROXY, String(port), String(target), ...words], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return { port: Number(line), child };
  }
  throw new Error('the process of another user did not begin to listen');
}
