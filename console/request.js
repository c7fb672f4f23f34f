// A request to a person: everything that counts is shown before any button.
import { get, isRefusal, post, runPath } from './api.js';
import { fieldsOf, parseJson, readFields, readNumber } from './form.js';
import { Failure, ago, duration, runLink, useNow, visible, visibleJson } from './parts.js';
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

const WORDS = {
  approve: 'Approve',
  deny: 'Deny',
  edit: 'Edit …',
  answer: 'Answer …',
  raise: 'Raise …',
  stop: 'End the turn',
  happened: 'It happened …',
  retry: 'Execute again',
  abandon: 'Give up on it',
  accept: 'Accept the new form',
  some: 'Approve some …',
};
/** What a server is told that asks the person itself. */
const TOLD = { deny: 'Decline', abandon: 'Dismiss' };
/** The decisions that need something from the person first. */
const WITH_FORM = ['edit', 'answer', 'raise', 'happened', 'some'];

function Rows({ rows }) {
  return html`<dl class="rows">
    ${rows.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}
  </dl>`;
}

function Shown({ request }) {
  const { view } = request;
  return html`
    <${Rows} rows=${view.fields.filter(([name]) => name !== 'what')} />
    ${view.foreign.map(
      ({ title, texts }) => html`<figure class="quote" key=${title}>
        <figcaption>${title}</figcaption>
        ${texts.map((text) => html`<blockquote>${text}</blockquote>`)}
      </figure>`,
    )}
    ${/^https?:/.test(request.url ?? '') && html`<p><a href=${request.url} target="_blank" rel="noopener noreferrer">Open ${new URL(request.url).host}</a></p>`}
    ${view.arguments.length > 0 && html`<h2>Exactly what will be executed</h2><div class="exact"><${Rows} rows=${view.arguments} /></div>`}
    ${view.parsed && html`<h2>What the tool gets</h2><div class="exact"><${Rows} rows=${view.parsed} /></div>`}
    ${view.actions.map(
      (action) => html`<section class="action" key=${action.id}>
        <h2><code>${action.id}</code> ${action.tool} ${action.asks && html`<span class="pill asks">needs approval</span>`}</h2>
        <div class="exact"><${Rows} rows=${action.arguments} /></div>
      </section>`,
    )}
    <p class="digest">digest <code>${request.digest.slice(0, 16)}…</code></p>
  `;
}

/** The fields of a form that an MCP server asks for. What is there first is a default, so that rendering again changes no field. */
function Fields({ form }) {
  return fieldsOf(form).map(({ name, title, about, isNeeded, isList, isNumber, choices, first, firstText }, at) => {
    const control = choices
      ? html`<select name=${`field ${at}`} multiple=${isList} required=${isNeeded}>
          ${!isList && html`<option value="">…</option>`}
          ${choices.map(([value, text]) => html`<option value=${JSON.stringify(value)} selected=${first.includes(value)}>${text}</option>`)}
        </select>`
      : html`<input name=${`field ${at}`} type=${isNumber ? 'number' : 'text'} step="any" required=${isNeeded} defaultValue=${firstText} autocomplete="off" />`;
    return html`<label key=${name}>${title}${isNeeded ? '' : ' (optional)'}${about && html` <small>${about}</small>`}${control}</label>`;
  });
}

/** Returns the fields of a decision that a form adds. Throws a text for people. */
function readForm(as, data, request) {
  const result = (text) => parseJson(text, 'The result is JSON.');
  if (as === 'edit') return { arguments: readArguments(data.get('arguments')) };
  if (as === 'raise') return { arguments: { [data.get('limit')]: readNumber(data.get('amount'), data.get('limit')) * unitOf(data.get('limit')) } };
  if (as === 'some') return { actions: data.getAll('action') };
  if (as === 'happened') return { result: result(data.get('result')) };
  if (as === 'answer' && request.form) return { result: readFields(request.form, (at) => data.getAll(`field ${at}`)) };
  const text = data.get('result');
  if (as === 'answer') return { result: data.get('isJson') ? result(text) : text };
  return {};
}

/** The time of a limit is given in minutes; every other limit as it is. */
const unitOf = (limit) => (limit === 'wallMs' ? 60_000 : 1);

function readArguments(text) {
  const problem = 'Arguments are one JSON object.';
  const value = parseJson(text, problem);
  if (value && typeof value === 'object' && !Array.isArray(value)) return value;
  throw new Error(problem);
}

function Form({ as, request, onDone, onBack }) {
  const first = useRef(null);
  useEffect(() => first.current?.focus(), []);
  const [problem, setProblem] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    setProblem(null);
    try {
      onDone(readForm(as, new FormData(event.target), request));
    } catch (error) {
      setProblem(error);
    }
  };
  const area = (name, value, label) => html`<label>${label}<textarea ref=${first} name=${name} rows="5" spellcheck="false" required>${value}</textarea></label>`;
  return html`<form class="decide" onSubmit=${submit}>
    ${as === 'edit' && area('arguments', visibleJson(JSON.stringify(JSON.parse(request.arguments ?? '{}'), null, 2)), 'All new arguments, as JSON')}
    ${as === 'happened' && area('result', '""', 'What the call returned, as JSON')}
    ${
      as === 'answer' &&
      (request.form
        ? html`<${Fields} form=${request.form} />`
        : html`${request.options?.length > 0 && html`<div class="buttons">${request.options.map((option) => html`<button type="button" onClick=${() => onDone({ result: option })}>${visible(option)}</button>`)}</div>`}
      ${area('result', '', 'Your answer')}
      ${request.kind !== 'question' && html`<label class="check"><input type="checkbox" name="isJson" /> It is JSON</label>`}`)
    }
    ${
      as === 'raise' &&
      html`<input type="hidden" name="limit" value=${request.limit.name} />
        <label>Raise ${request.limit.name === 'wallMs' ? 'the time by (minutes)' : `${request.limit.name} by`}<input ref=${first} name="amount" type="number" min="0" step="any" required /></label>`
    }
    ${
      as === 'some' &&
      request.view.actions.map(
        ({ id, tool, asks }) => html`<label class="check"><input type="checkbox" name="action" value=${id} defaultChecked=${!asks} /> <code>${id}</code> ${tool}</label>`,
      )
    }
    <${Failure} error=${problem} />
    <div class="buttons"><button class="primary">${WORDS[as].replace(' …', '')}</button><button type="button" onClick=${onBack}>Back</button></div>
  </form>`;
}

const AGAIN_MS = 2_000;

/**
 * Loads a request with all arguments; again when `open` or `version` changes, and as long as a worker has to check a
 * decision about it. `version` of the result is the one for which it was loaded.
 */
function useRequest({ run, id, digest, checking, refused }, isOpen, version) {
  const [loaded, setLoaded] = useState({ request: null, error: null, version });
  useEffect(() => {
    if (!isOpen) return undefined;
    let isOver = false;
    let timer;
    const load = async () => {
      const next = await get(runPath(run, `/requests/${encodeURIComponent(id)}`)).then(
        (request) => ({ request, error: null }),
        (error) => ({ error }),
      );
      if (isOver) return;
      setLoaded((before) => ({ ...before, ...next, version }));
      if (next.error ? !isRefusal(next.error) : next.request.checking) timer = setTimeout(load, AGAIN_MS);
    };
    void load();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [run, id, digest, checking, refused, isOpen, version]);
  return loaded;
}

export const decide = (run, decisions) => post(runPath(run, '/decisions'), { decisions });

/** Returns what has become of the decision that was sent here; null if there is none, or if it was refused, so that another one is possible. */
function fateOf({ as, isChecked, version }, loaded) {
  if (as === null) return null;
  if (!isChecked || loaded.error?.status === 404) return `Decided: ${as}.`;
  const isAnswered = loaded.version === version && !loaded.error;
  return isAnswered && !loaded.request.checking ? null : 'A worker checks the decision.';
}

/** A request as a card. `onDecided` is called when the run has recorded a decision; with another `batch`, it may have recorded one of many. */
export function RequestCard({ open, isOpen, onToggle, onDecided, onShown, batch = 0, showsRun = true, mayDecide = true }) {
  const [form, setForm] = useState(null);
  const [note, setNote] = useState('');
  const [state, setState] = useState({ busy: null, error: null });
  // The decision that was sent last. The request is loaded again if it may be refused.
  const [sent, setSent] = useState({ as: null, isChecked: false, checks: 0 });
  const version = `${batch} ${sent.checks}`;
  const loaded = useRequest(open, isOpen, version);
  const { request, error } = loaded;
  const done = fateOf({ ...sent, version }, loaded);
  const isGone = error?.status === 404;
  const now = useNow();
  useEffect(() => {
    if (request) onShown?.(request);
  }, [request]);
  const send = async (as, more = {}) => {
    setState({ busy: as, error: null });
    try {
      const reason = note.trim();
      const what = { request: request.id, digest: request.digest, as, ...more, ...(reason && { note: reason }) };
      const { receipts } = await decide(open.run, [what]);
      const isChecked = receipts[0]?.checking === true;
      setState({ busy: null, error: null });
      setSent(({ checks }) => ({ as, isChecked, checks: checks + (isChecked ? 1 : 0) }));
      onDecided?.(open, as);
    } catch (failure) {
      setState({ busy: null, error: failure });
    }
  };
  const [first, ...lines] = open.shown.split('\n').map(visible);
  // Of a call, the second line is what its tool says about it, or its first argument.
  const title = open.kind === 'approval' && lines.length > 0 ? `${visible(open.tool)}: ${lines[0]}` : first;
  const what = request?.view.fields.find(([name]) => name === 'what')?.[1];
  const expires = open.expiresAt === null ? null : open.expiresAt - now;
  return html`<article class=${`request ${isOpen ? 'open' : ''}`} data-request=${`${open.run} ${open.id}`}>
    <header>
      <button class="summary" aria-expanded=${isOpen} onClick=${onToggle}>
        <span class="what">${what ?? request?.view.headline ?? title}</span>
        <span class="meta">
          <span class="kind">${request ? request.view.asksFor : open.kind.replace('_', ' ')}</span>
          ${open.agent && html`<span>${visible(open.agent)}</span>`}
          <time>${ago(open.raisedAt, now)}</time>
          ${expires !== null && html`<span class=${expires < 3_600_000 ? 'soon' : ''}>${expires <= 0 ? 'has expired' : `expires in ${duration(expires)}`}</span>`}
        </span>
        ${!isOpen && lines.length > 0 && html`<span class="lines">${(title === first ? lines : lines.slice(1)).slice(0, 3).join('  ·  ')}</span>`}
      </button>
    </header>
    ${
      isOpen &&
      html`<div class="body">
        <${Failure} error=${isGone && done ? null : error} />
        ${!request && !error && html`<p class="loading">Loading every argument …</p>`}
        ${request && html`<${Shown} request=${request} />`}
        ${
          request &&
          mayDecide &&
          !isGone &&
          // What is written stays until the decision counts: a worker may refuse it.
          html`<div hidden=${done !== null}>
            ${sent.as !== null && request.refused && html`<${Failure} error=${{ message: `The decision was refused: ${request.refused}` }} />`}
            <label class="note">Note<input value=${note} onInput=${(event) => setNote(event.target.value)} placeholder="a reason, for the agent (optional)" maxlength="2000" autocomplete="off" /></label>
            ${form
              ? html`<${Form} as=${form} request=${request} onBack=${() => setForm(null)} onDone=${(more) => send(form, more)} />`
              : html`<div class="buttons">
                  ${(done === null ? request.decisions : []).map(
                    (as, index) => html`<button
                      key=${as}
                      data-as=${as}
                      class=${index === 0 ? 'primary' : as === 'deny' || as === 'stop' ? 'danger' : ''}
                      disabled=${state.busy !== null || request.checking}
                      onClick=${() => (WITH_FORM.includes(as) ? setForm(as) : send(as))}
                    >
                      ${state.busy === as ? '…' : ((request.server !== undefined && TOLD[as]) || WORDS[as])}
                    </button>`,
                  )}
                </div>`}
          </div>`
        }
        ${request && !mayDecide && html`<p class="hint">You may read this request, and not decide about it.</p>`}
        ${!done && !isGone && request?.checking && html`<p class="hint">A worker has to check a decision about it first.</p>`}
        ${done && html`<p class="done" role="status">${done}</p>`}
        <${Failure} error=${state.error} />
        ${showsRun && html`<p class="hint"><a href=${runLink(open.run)}>Open run ${visible(open.run)}</a></p>`}
      </div>`
    }
  </article>`;
}
