import { createRequire } from 'node:module';
import type { UIMessage } from 'ai';
import { UiChat, type UiChatOptions } from './ui-chat.js';

// A process that has chats for its parent, with the `ai` that is installed next to its bundle.

/** The operations of a chat, as a test uses them. */
export type ChatOperations = Pick<
  UiChat,
  'sendMessage' | 'addToolApprovalResponse' | 'resumeStream'
>;

/** What the parent wants. */
export type ChatWish =
  | {
      readonly type: 'open';
      readonly chat: number;
      readonly url: string;
      readonly options: UiChatOptions;
    }
  | { readonly type: 'messages'; readonly chat: number; readonly messages: UIMessage[] }
  | {
      readonly type: 'do';
      readonly chat: number;
      readonly number: number;
      readonly name: keyof ChatOperations;
      readonly given: unknown;
    };

/** The state of a chat, as its parent sees it. */
export interface ShownState {
  readonly messages: UIMessage[];
  readonly status: UiChat['status'];
  /** The message of its error. */
  readonly problem: string | null;
  readonly offered: readonly string[];
}

/** The versions that the chats have. */
export interface ChatVersions {
  readonly ai: string;
  readonly node: string;
}

/** What the parent gets: the versions, each new state of a chat, and the end of each operation after its states. */
export type ChatReport =
  | { readonly type: 'versions'; readonly versions: ChatVersions }
  | { readonly type: 'state'; readonly chat: number; readonly state: ShownState }
  | { readonly type: 'done'; readonly number: number; readonly problem: string | null };

const chats = new Map<number, UiChat>();
const report = (one: ChatReport): void => void process.send?.(one);

function show(chat: number): void {
  const shown = chats.get(chat);
  if (shown === undefined) return;
  const { messages, status, error, offered } = shown;
  const state = { messages, status, problem: error?.message ?? null, offered };
  report({ type: 'state', chat, state });
}

async function operate(chat: UiChat, wish: Extract<ChatWish, { type: 'do' }>): Promise<void> {
  const { name, given, number } = wish;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has its types
  const operation = chat[name] as (given: unknown) => PromiseLike<void>;
  let problem: string | null = null;
  try {
    await operation(given);
  } catch (error) {
    problem = String(error);
  }
  show(wish.chat);
  report({ type: 'done', number, problem });
}

process.on('message', (wish: ChatWish) => {
  if (wish.type === 'open') {
    const { chat, url, options } = wish;
    chats.set(chat, new UiChat(url, options, () => show(chat)));
    return;
  }
  const chat = chats.get(wish.chat);
  if (chat === undefined) throw new Error(`there is no chat ${wish.chat}`);
  if (wish.type === 'messages') {
    chat.messages = wish.messages;
    return;
  }
  void operate(chat, wish);
});
process.on('disconnect', () => process.exit());

const { version: ai } = createRequire(import.meta.url)('ai/package.json');
report({ type: 'versions', versions: { ai, node: process.versions.node } });
