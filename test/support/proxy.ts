import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy whose connections a test can cut. */
export interface Proxy {
  readonly address: string;
  /** Closes all connections, and refuses new ones until `restore`. */
  cut(): void;
  /** Lets no byte pass until `restore`, as a network does that drops packets; nothing is closed. */
  hold(): void;
  /** Ends a cut or a hold. */
  restore(): void;
  close(): Promise<void>;
}

/** Starts a proxy to `host:port` on a port of 127.0.0.1, by default a free one. */
export async function startProxy(target: string, at = 0): Promise<Proxy> {
  const [host, port] = target.split(':');
  const sockets = new Set<Socket>();
  let isCut = false;
  let isHeld = false;
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
      socket.on('data', (bytes) => {
        if (!other.write(bytes)) socket.pause();
      });
      socket.on('end', () => other.end());
      other.on('drain', () => !isHeld && socket.resume());
      if (isHeld) socket.pause();
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
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    restore() {
      isCut = false;
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
