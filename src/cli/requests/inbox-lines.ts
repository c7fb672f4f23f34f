import type { OpenRequest } from '../../client/memo-requests.js';
import { formatAgo, formatSpan } from '../format/format-time.js';
import { oneLine, wrapped, wrappedCommand } from './wrap.js';

export interface InboxLineOptions {
  /** The width of a line in columns. */
  readonly width: number;
  /** Unix time in ms. */
  readonly now: number;
  /** Returns the command that shows a request in full. */
  readonly show: (request: OpenRequest) => string;
}

/** Returns a block of lines for each open request: what it is about, and how to see it in full. */
export function inboxLines(
  requests: readonly OpenRequest[],
  { width, now, show }: InboxLineOptions,
): readonly string[] {
  return requests.flatMap((request, at) => {
    const { run, id, agent, kind, raisedAt, expiresAt } = request;
    const [first = '', ...rest] = request.shown.split('\n');
    const expires = expiresAt === null ? [] : [expiryText(expiresAt, now)];
    return [
      ...(at === 0 ? [] : ['']),
      ...wrapped(`${oneLine(id)} of run ${oneLine(run)}`, width),
      ...wrapped(`${kind}, agent ${oneLine(agent ?? 'unknown')}`, width),
      ...wrapped(oneLine(first), width),
      // Indented, so that no text can be mistaken for our own lines.
      ...rest.flatMap((line) => wrapped(`  ${oneLine(line)}`, width)),
      ...wrapped([formatAgo(raisedAt, now), ...expires].join(', '), width),
      ...wrappedCommand(oneLine(show(request)), width),
    ];
  });
}

function expiryText(expiresAt: number, now: number): string {
  return expiresAt <= now ? 'has expired' : `expires in ${formatSpan(expiresAt - now)}`;
}
