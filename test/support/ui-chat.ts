import {
  AbstractChat,
  type ChatState,
  DefaultChatTransport,
  type UIMessage,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai';

/** The state of a chat, as `useChat` keeps it for React. */
class State implements ChatState<UIMessage> {
  status: ChatState<UIMessage>['status'] = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[];
  constructor(messages: UIMessage[], changed: () => void) {
    this.messages = messages;
    // oxlint-disable-next-line no-constructor-return -- the same object, whose changes are seen
    return new Proxy(this, {
      set(state, name, value) {
        Reflect.set(state, name, value);
        changed();
        return true;
      },
    });
  }
  pushMessage(message: UIMessage): void {
    this.messages = [...this.messages, message];
  }
  popMessage(): void {
    this.messages = this.messages.slice(0, -1);
  }
  replaceMessage(index: number, message: UIMessage): void {
    this.messages = this.messages.with(index, structuredClone(message));
  }
  snapshot<T>(value: T): T {
    return structuredClone(value);
  }
}

/** With whom a chat is, and what it begins with. */
export interface UiChatOptions {
  readonly agent: string;
  readonly id: string;
  readonly messages?: UIMessage[];
  /** The key of a principal. */
  readonly key: string;
}

/** What `useChat` wraps, with the official transport. */
export class UiChat extends AbstractChat<UIMessage> {
  /** The tools whose execution was left to the client. */
  readonly offered: readonly string[];
  constructor(
    url: string,
    { agent, id, messages = [], key }: UiChatOptions,
    changed: () => void = () => undefined,
  ) {
    const offered: string[] = [];
    super({
      id,
      state: new State(messages, changed),
      transport: new DefaultChatTransport({
        api: `${url}/v1/ui/${agent}`,
        headers: { authorization: `Bearer ${key}` },
      }),
      onToolCall: ({ toolCall }) => void offered.push(toolCall.toolName),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    this.offered = offered;
  }
}

/** Returns the text parts of a message, separated by bars. */
export const uiText = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|');

/** Returns the first call in a message. */
export const uiCall = (message: UIMessage | undefined) =>
  message?.parts.find((part) => part.type === 'dynamic-tool');

/** Returns the approval that a message asks for. */
export function uiApproval(message: UIMessage | undefined): string {
  const call = uiCall(message);
  if (call?.state === 'approval-requested') return call.approval.id;
  throw new Error(`no approval: the call is ${call?.state ?? 'missing'}`);
}
