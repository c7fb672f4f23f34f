import { setTimeout } from 'node:timers/promises';
import { Hono } from 'hono';
import { type HttpClient, HttpRequestError, httpClient } from 'perdure/http';
import { type Block, callSlack, isSigned, plain, runOf, sections } from './slack.js';

/** What this app needs to know. */
export interface SlackAppOptions {
  /** The address of `perdure serve`. */
  readonly url: string;
  /**
   * Who may talk to the agent and decide: the key of `perdure serve` for each Slack user id. Each person has
   * a key of their own, so the server verifies who decided, and its rules can tell people apart.
   */
  readonly people: Readonly<Record<string, string>>;
}

/** The fields that this app reads of what Slack sends. */
interface SlackEvent {
  readonly type: string;
  readonly challenge?: string;
  readonly event?: Said;
}

interface Said {
  readonly type: string;
  readonly user?: string;
  readonly bot_id?: string;
  readonly subtype?: string;
  readonly text?: string;
  readonly channel: string;
  readonly ts: string;
  readonly thread_ts?: string;
}

interface SlackAction {
  readonly type: string;
  readonly user: { readonly id: string };
  readonly trigger_id?: string;
  readonly actions?: readonly { readonly action_id: string; readonly value?: string }[];
  readonly channel?: { readonly id: string };
  readonly message?: { readonly thread_ts?: string; readonly ts: string };
  readonly view?: {
    readonly private_metadata: string;
    readonly state: { readonly values: Readonly<Record<string, Readonly<Record<string, Field>>>> };
  };
}

interface Field {
  readonly value?: string | null;
  readonly selected_option?: { readonly value: string } | null;
}

/** What a form is about. The digest is that of the request as the form shows it. */
interface Form {
  readonly run: string;
  readonly request: string;
  readonly digest: string;
  readonly channel: string;
  readonly thread_ts: string;
}

/** Who has made a decision that is being checked, and where that is said. */
interface CheckedBy {
  readonly user: string;
  readonly thread: Pick<Form, 'channel' | 'thread_ts'>;
}

type DecisionName = 'approve' | 'deny' | 'answer';
const DECISIONS: readonly DecisionName[] = ['approve', 'deny', 'answer'];
const MAX_BLOCKS = 90;
/** Looks at a decision that is being checked, for ten minutes. */
const [CHECK_LOOKS, CHECK_PAUSE_MS] = [600, 1_000];

/** The routes that Slack calls. Each request is signed by Slack; without a valid signature, nothing happens. */
export function createSlackApp({ url, people }: SlackAppOptions): Hono {
  const app = new Hono();
  const apiOf = (user: string): HttpClient | null => {
    const key = Object.hasOwn(people, user) ? people[user] : undefined;
    return key === undefined ? null : httpClient({ url, key });
  };

  app.use(async (context, next) => {
    const body = await context.req.text();
    if (!isSigned(context.req.raw.headers, body, Date.now()))
      return context.text('not signed', 401);
    return await next();
  });

  // Slack sends an event again if the answer is late. The ids of the run and of the message are those of
  // Slack's message, so it still arrives once.
  app.post('/slack/events', async (context) => {
    const { type, challenge = '', event } = await context.req.json<SlackEvent>();
    if (type === 'url_verification') return context.text(challenge);
    if (event !== undefined) await hear(event, apiOf(event.user ?? ''));
    return context.body(null, 200);
  });

  app.post('/slack/actions', async (context) => {
    const { payload } = await context.req.parseBody<{ payload: string }>();
    const action = JSON.parse(payload) as SlackAction;
    const api = apiOf(action.user.id);
    if (action.type === 'view_submission') {
      return context.json(api === null ? stranger() : await decide(api, action));
    }
    if (api !== null) await openForm(api, action);
    return context.body(null, 200);
  });

  return app;
}

/** Passes a message on: a mention begins a run, and a reply in a thread continues it. */
async function hear(event: Said, api: HttpClient | null): Promise<void> {
  const { type, user, bot_id, subtype, text = '', channel, ts, thread_ts } = event;
  if (api === null || bot_id !== undefined || subtype !== undefined) return;
  const isFirst = thread_ts === undefined;
  if (type !== 'app_mention' && (type !== 'message' || isFirst)) return;
  const message = text.replace(/^<@\w+>\s*/, '');
  const run = runOf({ channel, thread_ts: thread_ts ?? ts });
  const refusal = isFirst
    ? await api.startRun({ agent: 'desk', message, id: run, open: true }).catch(refusalOf)
    : await api.sendMessage({ run, message, id: ts }).catch(refusalOf);
  if (!(refusal instanceof HttpRequestError)) return;
  // The event came twice, or the thread belongs to no run.
  if (refusal.code === 'id_taken' || refusal.code === 'no_run') return;
  const blocks = sections(refusal.message);
  const post = { channel, thread_ts: thread_ts ?? ts, user, text: 'Not sent.', blocks };
  await callSlack('chat.postEphemeral', post);
}

/** Shows the whole request, with what the person may answer. */
async function openForm(api: HttpClient, action: SlackAction): Promise<void> {
  const [{ value = '{}', action_id } = { action_id: '' }] = action.actions ?? [];
  if (action_id !== 'review') return;
  const { run, request: id } = JSON.parse(value) as Pick<Form, 'run' | 'request'>;
  const request = await api.getRequest({ run, request: id }).catch(refusalOf);
  if (request instanceof HttpRequestError) {
    return await openModal(action, { blocks: sections(request.message) });
  }
  const { digest, decisions, view, fix } = request;
  const rows = [...view.fields, ...view.arguments].map(([name, text]) => `${name}: ${text}`);
  const parsed = (view.parsed ?? []).map(([name, text]) => `the tool gets ${name}: ${text}`);
  const actions = view.actions.map(
    ({ id: number, tool, arguments: given }) =>
      `${number}. ${tool} ${given.map(([name, text]) => `${name}: ${text}`).join(', ')}`,
  );
  const foreign = view.foreign.flatMap(({ title, texts }) =>
    texts.map((text) => `${title}: ${text}`),
  );
  const blocks = [view.headline, ...rows, ...parsed, ...actions, ...foreign].flatMap(sections);
  const offered = DECISIONS.filter((name) => decisions.includes(name));
  // What cannot be shown whole is not decided here.
  if (blocks.length > MAX_BLOCKS || offered.length === 0) {
    const elsewhere = sections(`Decide in the console, or in a terminal with: ${fix}`);
    return await openModal(action, { blocks: [...blocks.slice(0, MAX_BLOCKS), ...elsewhere] });
  }
  const thread_ts = action.message?.thread_ts ?? action.message?.ts ?? '';
  const form: Form = { run, request: id, digest, channel: action.channel?.id ?? '', thread_ts };
  await openModal(action, {
    blocks: [...blocks, ...inputs(offered)],
    private_metadata: JSON.stringify(form),
    submit: plain('Decide'),
  });
}

function inputs(offered: readonly DecisionName[]): readonly Block[] {
  const options = offered.map((name) => ({ text: plain(name), value: name }));
  return [
    {
      type: 'input',
      block_id: 'decision',
      label: plain('Decision'),
      element: { type: 'radio_buttons', action_id: 'decision', options },
    },
    {
      type: 'input',
      block_id: 'note',
      optional: true,
      label: plain('Answer, or the reason'),
      element: { type: 'plain_text_input', action_id: 'note', multiline: true, max_length: 2_000 },
    },
  ];
}

async function openModal(
  { trigger_id }: SlackAction,
  view: {
    readonly blocks: readonly Block[];
    readonly private_metadata?: string;
    readonly submit?: Block;
  },
): Promise<void> {
  const modal = { type: 'modal', title: plain('Decision'), ...view };
  await callSlack('views.open', { trigger_id, view: modal });
}

/** Sends the decision, and returns what Slack shows: nothing, or why it did not count. */
async function decide(api: HttpClient, { user, view }: SlackAction): Promise<Block> {
  const { run, request, digest, ...thread } = JSON.parse(view?.private_metadata ?? '{}') as Form;
  const values = view?.state.values ?? {};
  const as = DECISIONS.find(
    (name) => name === values['decision']?.['decision']?.selected_option?.value,
  );
  if (as === undefined) return problem('choose one');
  const note = values['note']?.['note']?.value ?? '';
  const said = as === 'answer' ? { result: note } : note !== '' && { note };
  const decision = { request, digest, as, ...said };
  const made = await api.decide({ run, decisions: [decision] }).catch(refusalOf);
  if (made instanceof HttpRequestError) return problem(made.message);
  // A worker may refuse it; the request then stays open, and says why.
  const isChecked = made.receipts.some(({ checking }) => checking);
  const text = isChecked
    ? `The decision of <@${user.id}> is being checked: ${as}. If it is refused, this thread and Review say why.`
    : `<@${user.id}> has decided: ${as}`;
  // The decision counts, even if Slack does not hear of it.
  await callSlack('chat.postMessage', { ...thread, text }).catch(console.error);
  // Slack waits 3 seconds for its answer, so the check is awaited after it.
  if (isChecked)
    void reportRefusal(api, { run, request, user: user.id, thread }).catch(console.error);
  return { response_action: 'clear' };
}

/** Waits until a worker has checked a decision, and says in the thread if it has refused it. */
async function reportRefusal(
  api: HttpClient,
  { run, request, user, thread }: Pick<Form, 'run' | 'request'> & CheckedBy,
): Promise<void> {
  for (let looks = 0; looks < CHECK_LOOKS; looks += 1) {
    const now = await api.getRequest({ run, request }).catch(refusalOf);
    // A decision that counts has closed the request.
    if (now instanceof HttpRequestError) return;
    if (now.checking !== true) {
      const title = `The decision of <@${user}> is refused, and Review still decides.`;
      return now.refused === undefined
        ? undefined
        : await callSlack('chat.postMessage', {
            ...thread,
            text: title,
            blocks: [
              { type: 'section', text: { type: 'mrkdwn', text: title } },
              ...sections(now.refused),
            ],
          });
    }
    await setTimeout(CHECK_PAUSE_MS);
  }
}

function problem(text: string): Block {
  return { response_action: 'errors', errors: { decision: text } };
}

function stranger(): Block {
  return problem('You may not decide here: the app has no key for you.');
}

/** Returns the error with which the server refused a request; Slack sends an event again after any other. */
function refusalOf(error: unknown): HttpRequestError {
  if (error instanceof HttpRequestError && error.status < 500) return error;
  throw error;
}
