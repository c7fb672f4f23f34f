import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy whose connections a test can cut. */
export interface Proxy {
  readonly address: string;
  /** Closes all connections, and refuses new ones from now on. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a proxy to `host:port` on a port of 127.0.0.1, by default a free one. */
export async function startProxy(target: string, at = 0): Promise<Proxy> {
  const [host, port] = target.split(':');
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect({ host, port: Number(port) });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
