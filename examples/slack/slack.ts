import { createHmac, timingSafeEqual } from 'node:crypto';

/** What Slack calls a block; see https://api.slack.com/block-kit. */
export type Block = Readonly<Record<string, unknown>>;

const TIMEOUT_MS = 8_000;

/** Calls a method of Slack's Web API. Rejects unless Slack accepts it. */
export async function callSlack(method: string, body: Block): Promise<void> {
  const { SLACK_API = 'https://slack.com/api', SLACK_BOT_TOKEN = '' } = process.env;
  const response = await fetch(`${SLACK_API}/${method}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${SLACK_BOT_TOKEN}`,
      'content-type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const answer = (await response.json()) as { ok: boolean; error?: string };
  if (!answer.ok) throw new Error(`Slack refused ${method}: ${answer.error}`);
}

/** Text as it is: Slack finds no link, mention, or format in it. */
export const plain = (text: string) => ({ type: 'plain_text', text, emoji: false });

/** UTF-16 units of a section: Slack takes 3,000 characters, however it counts them. */
const SECTION = 2_900;

/** A text of any length, in sections that Slack accepts. None is cut within a character. */
export function sections(text: string): readonly Block[] {
  const parts = text.match(new RegExp(`[^]{1,${SECTION}}(?![\\udc00-\\udfff])`, 'g')) ?? [];
  return parts.map((part) => ({ type: 'section', text: plain(part) }));
}

/** Slack refuses a message whose sections have more than about 12,000 characters together. */
const SECTIONS_PER_MESSAGE = 3;

/** Posts a text of any length, as one message or several. `title`: for notifications. */
export async function postText(to: Thread, title: string, text: string): Promise<void> {
  const all = sections(text);
  for (let at = 0; at < all.length; at += SECTIONS_PER_MESSAGE) {
    const blocks = all.slice(at, at + SECTIONS_PER_MESSAGE);
    await callSlack('chat.postMessage', { ...to, text: title, blocks });
  }
}

const OLDEST_S = 300;

/** Whether Slack signed this body in the last five minutes. `now`: Unix time in ms. */
export function isSigned(headers: Headers, body: string, now: number): boolean {
  const { SLACK_SIGNING_SECRET = '' } = process.env;
  const at = headers.get('x-slack-request-timestamp') ?? '';
  const isRecent = Math.abs(now / 1_000 - Number(at)) <= OLDEST_S;
  if (SLACK_SIGNING_SECRET === '' || at === '' || !isRecent) return false;
  const hmac = createHmac('sha256', SLACK_SIGNING_SECRET).update(`v0:${at}:${body}`);
  const expected = Buffer.from(`v0=${hmac.digest('hex')}`);
  const given = Buffer.from(headers.get('x-slack-signature') ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The thread of a run, which is also the run's id: nothing else has to be stored. */
export interface Thread {
  readonly channel: string;
  readonly thread_ts: string;
}

export function runOf({ channel, thread_ts }: Thread): string {
  return `slack-${channel}-${thread_ts}`;
}

/** Returns the thread in which a run began; null if it did not begin in Slack. */
export function threadOf(run: string): Thread | null {
  const [, channel = '', thread_ts = ''] = /^slack-(\w+)-([\d.]+)$/.exec(run) ?? [];
  return channel === '' ? null : { channel, thread_ts };
}
