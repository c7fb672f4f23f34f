import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { UIMessage } from 'ai';
import { build } from 'esbuild';
import type { ContractPackages } from './contract-packages.js';
import type {
  ChatOperations,
  ChatReport,
  ChatVersions,
  ChatWish,
  ShownState,
} from './ui-chat-process.js';
import type { UiChat, UiChatOptions } from './ui-chat.js';

const SCRIPT = fileURLToPath(new URL('./ui-chat-process.ts', import.meta.url));

/** A chat in another process, as a test sees it. */
type RemoteChat = ChatOperations &
  Pick<UiChat, 'messages' | 'status' | 'error' | 'lastMessage' | 'offered'>;

/** A process with the `ai` of the contract packages, and its chats. */
interface RemoteChats {
  /** Takes the place of `UiChat`. */
  readonly UiChat: new (url: string, options: UiChatOptions) => RemoteChat;
  readonly versions: ChatVersions;
  /** Returns how many chats there were. */
  opened(): number;
  close(): Promise<void>;
}

/** Starts a process whose chats are those of the installed `ai`. */
export async function startRemoteChats({ folder, node }: ContractPackages): Promise<RemoteChats> {
  // Next to the packages, so that it finds them.
  const script = join(folder, `ui-chat-${process.pid}.mjs`);
  await build({
    entryPoints: [SCRIPT],
    outfile: script,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['ai'],
    logLevel: 'error',
  });
  const child = fork(script, [], { execPath: node, execArgv: [] });
  const ended = once(child, 'exit');
  const states = new Map<number, ShownState>();
  const waiting = new Map<number, (problem: string | null) => void>();
  const versions = await new Promise<ChatVersions>((resolve, reject) => {
    child.on('message', (report: ChatReport) => {
      if (report.type === 'state') states.set(report.chat, report.state);
      else if (report.type === 'done') waiting.get(report.number)?.(report.problem);
      else resolve(report.versions);
    });
    child.on('exit', (code) => {
      const problem = `the process with the chats ended with ${code}`;
      reject(new Error(problem));
      for (const end of waiting.values()) end(problem);
    });
  });
  const send = (wish: ChatWish): void => void child.send(wish);
  let count = 0;

  class Remote implements RemoteChat {
    readonly #chat: number;
    constructor(url: string, options: UiChatOptions) {
      this.#chat = count += 1;
      const { messages = [] } = options;
      states.set(this.#chat, { messages, status: 'ready', problem: null, offered: [] });
      send({ type: 'open', chat: this.#chat, url, options });
    }
    get #state(): ShownState {
      const state = states.get(this.#chat);
      if (state === undefined) throw new Error('the chat has no state');
      return state;
    }
    get messages(): UIMessage[] {
      return this.#state.messages;
    }
    set messages(messages: UIMessage[]) {
      states.set(this.#chat, { ...this.#state, messages });
      send({ type: 'messages', chat: this.#chat, messages });
    }
    get status() {
      return this.#state.status;
    }
    get error() {
      const { problem } = this.#state;
      return problem === null ? undefined : new Error(problem);
    }
    get lastMessage() {
      return this.messages.at(-1);
    }
    get offered() {
      return this.#state.offered;
    }
    sendMessage: ChatOperations['sendMessage'] = async (given) =>
      await this.#do('sendMessage', given);
    addToolApprovalResponse: ChatOperations['addToolApprovalResponse'] = async (given) =>
      await this.#do('addToolApprovalResponse', given);
    resumeStream: ChatOperations['resumeStream'] = async (given) =>
      await this.#do('resumeStream', given);
    async #do(name: keyof ChatOperations, given: unknown): Promise<void> {
      const number = (count += 1);
      const problem = await new Promise<string | null>((resolve) => {
        waiting.set(number, resolve);
        send({ type: 'do', chat: this.#chat, number, name, given });
      });
      waiting.delete(number);
      if (problem !== null) throw new Error(problem);
    }
  }

  return {
    UiChat: Remote,
    versions,
    opened: () => states.size,
    async close() {
      child.kill();
      await ended;
      await rm(script, { force: true });
    },
  };
}
