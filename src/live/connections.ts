import type { Server } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Refusal } from './admission.js';
import type { LimitsInForce } from './live-limits.js';

/** Seconds after which a refused reader may try again. */
const RETRY_AFTER = 5;

/** The connections of a server, counted against its limits. */
export interface Connections {
  /**
   * Admits a connection, which may read a stream until it is closed. Returns null, or the refusal.
   */
  admit(socket: Socket): Refusal | null;
}

/**
 * Keeps the connections of a server within its limits. Connections that read no stream are counted
 * separately, and only the newest of them stay open, so idle ones cannot keep readers out.
 */
export function guardConnections(server: Server, limits: LimitsInForce): Connections {
  const waiting = new Set<Socket>();
  const reading = new Set<Duplex>();
  const streamsByClient = new Map<string, number>();

  server.on('connection', (socket) => {
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket));
    const [oldest] = waiting;
    if (waiting.size <= limits.waiting || oldest === undefined) return;
    waiting.delete(oldest);
    oldest.destroy();
  });
  // A second request on the connection of a stream would wait for the end of the stream.
  server.on('dropRequest', (_request, socket) => {
    if (reading.has(socket)) socket.destroy();
  });

  return {
    admit(socket) {
      const client = clientOf(socket);
      const own = streamsByClient.get(client) ?? 0;
      if (reading.size >= limits.streams) {
        const message = `streams: at most ${limits.streams} at once; try again later`;
        return { status: 503, message, retryAfter: RETRY_AFTER };
      }
      if (own >= limits.streamsPerClient) {
        const message = `streams: at most ${limits.streamsPerClient} per client at once; close some`;
        return { status: 429, message, retryAfter: RETRY_AFTER };
      }
      waiting.delete(socket);
      reading.add(socket);
      streamsByClient.set(client, own + 1);
      socket.once('close', () => {
        reading.delete(socket);
        const left = (streamsByClient.get(client) ?? 1) - 1;
        if (left > 0) streamsByClient.set(client, left);
        else streamsByClient.delete(client);
      });
      return null;
    },
  };
}

/**
 * Returns the address without the part that one machine may choose: the lower half of an IPv6
 * address.
 */
function clientOf({ remoteAddress = '' }: Socket): string {
  const address = remoteAddress
    .replace(/^::ffff:(?=\d+\.)/, '')
    .split('%', 1)
    .join('');
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...after];
  return all.slice(0, 4).join(':');
}
