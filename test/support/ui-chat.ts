import {
  AbstractChat,
  type ChatState,
  DefaultChatTransport,
  type UIMessage,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai';
import { keyOf } from './http-desk.js';

/** The state of a chat, as `useChat` keeps it for React. */
class State implements ChatState<UIMessage> {
  status: ChatState<UIMessage>['status'] = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[];
  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }
  pushMessage = (message: UIMessage) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index: number, message: UIMessage) =>
    void (this.messages = this.messages.with(index, structuredClone(message)));
  snapshot = <T>(value: T): T => structuredClone(value);
}

/** What `useChat` wraps, with the official transport. */
export class UiChat extends AbstractChat<UIMessage> {
  constructor(
    url: string,
    {
      agent,
      id,
      messages = [],
      as = 'ann',
    }: {
      readonly agent: string;
      readonly id: string;
      readonly messages?: UIMessage[];
      readonly as?: string;
    },
  ) {
    super({
      id,
      state: new State(messages),
      transport: new DefaultChatTransport({
        api: `${url}/v1/ui/${agent}`,
        headers: { authorization: `Bearer ${keyOf(as)}` },
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
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
