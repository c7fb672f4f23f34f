import type { Server } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Refusal } from './admission.js';
import type { LiveLimits } from './live-limits.js';

/** Seconds after which a reader that was turned away may come back. */
const RETRY_AFTER = 5;

/** Who is connected, counted against the limits. */
export interface Connections {
  /** Lets a connection read a stream until it is closed. Returns why it may not, else null. */
  admit(socket: Socket): Refusal | null;
}

/**
 * Keeps the connections of a server within its limits. A connection on which no stream is read costs
 * nobody else a place: of those, the newest stay, so that idle ones cannot keep readers out.
 */
export function guardConnections(server: Server, limits: LiveLimits): Connections {
  const waiting = new Set<Socket>();
  const reading = new Set<Duplex>();
  const byClient = new Map<string, number>();

  server.on('connection', (socket) => {
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket));
    const [oldest] = waiting;
    if (waiting.size <= limits.waiting || oldest === undefined) return;
    waiting.delete(oldest);
    oldest.destroy();
  });
  // A second request on a connection that is being read would wait for the end of the stream.
  server.on('dropRequest', (_request, socket) => {
    if (reading.has(socket)) socket.destroy();
  });

  return {
    admit(socket) {
      const client = clientOf(socket);
      const own = byClient.get(client) ?? 0;
      if (reading.size >= limits.streams) {
        const message = `${limits.streams} streams are read at once, and no more; try again later`;
        return { status: 503, message, retryAfter: RETRY_AFTER };
      }
      if (own >= limits.streamsPerClient) {
        const message = `one client reads ${limits.streamsPerClient} streams at once at most; close some`;
        return { status: 429, message, retryAfter: RETRY_AFTER };
      }
      waiting.delete(socket);
      reading.add(socket);
      byClient.set(client, own + 1);
      socket.once('close', () => {
        reading.delete(socket);
        const left = (byClient.get(client) ?? 1) - 1;
        if (left > 0) byClient.set(client, left);
        else byClient.delete(client);
      });
      return null;
    },
  };
}

/** The address, without what one machine may choose freely: the lower half of an IPv6 address. */
function clientOf({ remoteAddress = '' }: Socket): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...after];
  return all.slice(0, 4).join(':');
}
