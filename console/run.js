// The page of one run: what it does, what it waits for, and what each step did.
import { follow, get, post, runPath } from './api.js';
import { SUMMARY, addEvents, emptyView } from './events.js';
import { Graph } from './graph.js';
import { Failure, Status, ago, duration, money, pretty, runLink, short, statusOf, useLoaded, useNow, visible, who } from './parts.js';
import { RequestCard } from './request.js';
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

/** Follows a run: its view from events, its status, and whether the stream is connected. */
function useRun(id) {
  const [view, setView] = useState(emptyView());
  const [link, setLink] = useState('opening');
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    const over = new AbortController();
    let current = emptyView();
    let queued = [];
    const flush = () => {
      if (queued.length === 0) return;
      current = addEvents(current, queued);
      queued = [];
      setView(current);
    };
    setView(current);
    const on = (events) => {
      if (queued.length === 0) requestAnimationFrame(flush);
      queued.push(...events);
      if (document.hidden) flush();
    };
    follow(id, { on, onState: setLink, signal: over.signal }).catch(setFailure);
    return () => over.abort();
  }, [id]);
  const isMoving = view.version > 0 && !view.end;
  const status = useLoaded(() => get(runPath(id)), [id], { every: isMoving ? 5_000 : 0, changes: [[...view.requests].join(), view.items.length, Boolean(view.end)] });
  return { view, link, failure, status: status.value, error: status.error, reload: status.reload };
}

const KINDS = { user: 'message', reply: 'model', working: 'model', wrote: 'model', call: 'tool', asked: 'request', node: 'node', blocked: 'blocked', note: 'note', refused: 'refused answer', outcome: 'end of turn', mark: '', turn: '' };

/** A node has ended when all of its items have. */
const itemsText = ({ done, total }) => `${total} of ${total} ${total === 1 ? 'item' : 'items'}${done < total ? `, ${total - done} failed` : ''}`;

const titleOf = (item) => (item.type === 'call' ? visible(item.call.name) : (item.author ?? KINDS[item.type]));

function labelOf(item) {
  switch (item.type) {
    case 'user':
      return visible(item.text);
    case 'reply':
      return item.text === '' ? `requests ${item.calls.map(({ name }) => visible(name)).join(', ')}` : visible(item.text);
    case 'call':
      return `${visible(item.call.summary ?? `${item.call.name} ${item.call.arguments ?? ''}`)}${item.given ? ` · given by ${item.given.by ? who(item.given) : 'a person'}` : ''}`;
    case 'asked':
      return item.to === null ? visible(`waits for a person: ${item.why}`) : `${visible(item.as ?? 'withdrawn')}${item.by ? ` by ${who(item)}` : ''}`;
    case 'working':
      return item.work.attempt > 1 ? `attempt ${item.work.attempt}` : '';
    case 'blocked':
      return visible(item.text);
    case 'node':
      return visible([`${item.node}${item.exit ? ` → ${item.exit}` : ''}`, item.items ? itemsText(item.items) : '', ...(item.items?.errors ?? []).map((one) => `item ${one.item}: ${one.message}`)].filter(Boolean).join(' · '));
    case 'refused':
      return visible(item.problem);
    case 'outcome':
      return visible(`${item.outcome.status}: ${item.outcome.reason}`);
    default:
      return visible(item.title ? `${item.title}: ${item.text}` : item.text);
  }
}

function toneOf(item) {
  if (item.type === 'call') return { failed: 'bad', asks: 'asks', works: 'busy', done: 'good', planned: 'calm' }[item.state];
  if (item.type === 'asked') return item.to === null ? 'asks' : item.as === 'approve' || item.as === 'answer' ? 'good' : 'calm';
  if (item.type === 'blocked') return item.to === null ? 'bad' : 'calm';
  if (item.type === 'refused') return 'bad';
  if (item.type === 'node') return item.interrupted || item.items?.errors ? 'bad' : 'calm';
  if (item.author === 'answer') return 'good';
  if (item.author === 'assistant') return 'calm';
  if (['reply', 'wrote', 'working'].includes(item.type)) return 'model';
  if (item.type === 'outcome') return { completed: 'good', failed: 'bad' }[item.outcome.status] ?? 'asks';
  return 'calm';
}

/** One step with its place in time. */
function Step({ item, view, now, isChosen, onChoose }) {
  if (item.type === 'turn') return item.turn === 1 ? null : html`<li class="turn">turn ${item.turn}</li>`;
  if (item.type === 'mark') return html`<li class="turn">${visible(item.text)}</li>`;
  const end = view.end ?? now;
  const whole = Math.max(1, end - view.start);
  const to = item.to ?? end;
  const left = ((item.from - view.start) / whole) * 100;
  const width = Math.max(0.6, ((to - item.from) / whole) * 100);
  const tone = toneOf(item);
  const took = item.ms ?? to - item.from;
  return html`<li class=${`step ${item.type} ${tone} ${isChosen ? 'chosen' : ''}`}>
    <button onClick=${onChoose} aria-expanded=${isChosen}>
      <span class=${`dot ${tone}`}></span>
      <span class="type">${titleOf(item)}</span>
      <span class="label">${labelOf(item)}</span>
      <span class="cost">${item.usage ? `${short((item.usage.inputTokens ?? 0) + (item.usage.outputTokens ?? 0))} tok` : ''}</span>
      <span class="took">${took >= 1 || item.to === null ? duration(took) : ''}</span>
      <span class="track" aria-hidden="true"><svg viewBox="0 0 100 6" preserveAspectRatio="none"><rect class=${tone} x=${Math.min(99.4, left)} width=${width} y="0" height="6" rx="1" /></svg></span>
    </button>
  </li>`;
}

function Live({ live }) {
  if (!live) return null;
  return html`<li class="live">
    ${live.title && html`<p class="thought">${visible(live.title)}</p>`}
    ${live.struck.map((text) => html`<del title="this attempt does not count">${visible(text)}</del>`)}
    ${live.thought && html`<p class="thought">${visible(live.thought)}</p>`}
    <p class="text">${visible(live.text)}<span class="caret" aria-hidden="true"></span></p>
  </li>`;
}

/** The model call that a worker has, as a step; null if there is none, or if the status is older than its end. */
function workingModel({ items }, status) {
  const work = status?.inFlight?.find(({ on }) => on === 'model');
  if (!work || items.some(({ at, begun, title }) => at >= work.since && (begun || title === SUMMARY))) return null;
  return { type: 'working', work, begun: true, at: work.since, from: work.since, to: null };
}

/** What is known of the attempts at a step, the newest last. The server keeps only the last failure of a row. */
function attemptsOf(item, work, now) {
  const { attempts, failures } = work ? { attempts: work.attempt, failures: work.failures } : (item.retried ?? { attempts: 1, failures: [] });
  const failed = failures.map(({ attempt, at, type, message }) => [attempt, `failed${at === null ? '' : ` at ${new Date(at).toLocaleTimeString()}`}: ${type ? `${type}: ` : ''}${message}`]);
  const lost = attempts - 1 - failures.filter(({ attempt }) => attempt < attempts).length;
  const isLast = failures.some(({ attempt }) => attempt === attempts);
  const last = () => {
    if (work) return work.startedAt !== null ? `running for ${duration(now - work.startedAt)}` : work.dueAt > now ? `begins in ${duration(work.dueAt - now)}` : 'waits for a worker';
    return { works: 'running', failed: 'failed; see the result', asks: 'waits for a person' }[item.state] ?? 'succeeded';
  };
  return [...(lost > 0 ? [['earlier', `${lost} failed; their errors are not recorded`]] : []), ...failed, ...(isLast ? [] : [[attempts, last()]])];
}

/** What a step did, in full. `work`: what the server knows of it while it runs. */
function Panel({ item, place, work, now, onClose }) {
  const close = useRef(null);
  useEffect(() => close.current?.focus(), [place]);
  const part = (title, text, isCode = true) => (text === undefined || text === null || text === '' ? null : html`<h3>${title}</h3>${isCode ? html`<pre tabindex="0">${pretty(text)}</pre>` : html`<p class="prose">${visible(text)}</p>`}`);
  return html`<aside class="panel" aria-label="step">
    <header><h2>${titleOf(item)}</h2><button ref=${close} class="quiet" onClick=${onClose} aria-label="Close">✕</button></header>
    ${item.type === 'call' && html`
      ${part('Arguments', item.call.arguments)}
      ${part('Result', item.result?.text)}
      ${!item.result && html`<p class="hint">${item.state === 'asks' ? 'It waits for a person.' : 'It has no result yet.'}</p>`}
      ${item.result?.blob && html`<p class="hint">This is the beginning and the end; the whole result has ${item.result.blob.bytes} bytes.</p>`}
    `}
    ${item.type !== 'call' && part(item.title ?? 'Text', item.text, false)}
    ${item.struck?.map((text) => html`<h3>Does not count</h3><p class="prose"><del>${visible(text)}</del></p>`)}
    ${item.calls?.length > 0 && html`<h3>Calls</h3><ul class="plain">${item.calls.map(({ name, summary }) => html`<li><code>${visible(name)}</code> ${summary ? visible(summary) : ''}</li>`)}</ul>`}
    ${item.problem && part('Problem', item.problem, false)}
    ${item.why && part('Why', item.why, false)}
    ${item.begun && html`<h3>Attempts</h3><dl class="rows attempts">${attemptsOf(item, work, now).map(([name, text]) => html`<div><dt>${name}</dt><dd>${visible(text)}</dd></div>`)}</dl>`}
    ${item.outcome && html`${part('Answer', item.outcome.answer, false)}${part('Error', item.outcome.error, false)}`}
    ${item.usage && html`<h3>Usage</h3><dl class="rows"><div><dt>input</dt><dd>${item.usage.inputTokens} tokens</dd></div><div><dt>output</dt><dd>${item.usage.outputTokens} tokens</dd></div><div><dt>cost</dt><dd>${money(item.usage.costUsd)}</dd></div></dl>`}
    <dl class="rows"><div><dt>at</dt><dd>${new Date(item.from).toLocaleString()}</dd></div>${item.to !== null && item.to > item.from && html`<div><dt>took</dt><dd>${duration(item.ms ?? item.to - item.from)}</dd></div>`}</dl>
  </aside>`;
}

function Control({ id, status, reload }) {
  const [state, setState] = useState({ busy: null, error: null });
  const act = async (name) => {
    setState({ busy: name, error: null });
    try {
      await post(runPath(id, `/${name}`));
      setState({ busy: null, error: null });
      reload();
    } catch (error) {
      setState({ busy: null, error });
    }
  };
  if (status.status === 'done' || !status.rights.includes('control')) return null;
  const isPaused = status.status === 'paused';
  const button = (name, words, tone = '') => html`<button class=${tone} disabled=${state.busy !== null} onClick=${() => act(name)}>${state.busy === name ? '…' : words}</button>`;
  return html`<div class="buttons control">
    ${isPaused || status.status === 'blocked' ? button('resume', isPaused ? 'Resume' : 'Try again now', 'primary') : button('pause', 'Pause')}
    ${status.status === 'waiting_message' && button('close', 'Close')}
    ${button('cancel', 'Cancel the run', 'danger')}
    <${Failure} error=${state.error} />
  </div>`;
}

/** The tokens of a run, with those of the agents that it has called, and what they cost. */
function Spent({ usage: { inputTokens, outputTokens, costUsd } }) {
  const tokens = inputTokens + outputTokens;
  const cost = costUsd !== null ? money(costUsd) : tokens > 0 ? 'cost unknown' : null;
  return html`<span>${short(tokens)} tokens</span>${cost && html`<span>${cost}</span>`}`;
}

function Header({ id, run, page }) {
  const { view, status, link } = run;
  const now = useNow(!view.end);
  const isOpen = view.open;
  return html`<header class="run-head">
    <div class="title">
      <h1>${visible(status?.givenId ?? id)}</h1>
      ${status && html`<${Status} name=${statusOf(status)} />`}
      ${link === 'lost' && html`<span class="pill bad">connecting …</span>`}
    </div>
    <p class="facts">
      <span><b>${view.agent || status?.agent || ''}</b></span>
      ${view.start && html`<span>${view.end ? `took ${duration(view.end - view.start)}` : `began ${ago(view.start, now)}`}</span>`}
      ${status && html`<span>step ${status.step}</span>`}
      ${status && html`<${Spent} usage=${status.usage} />`}
      ${status?.doing && html`<span class="doing">${visible(status.doing)}</span>`}
    </p>
    ${isOpen && html`<nav class="sub" aria-label="views of the run"><a class=${page === 'run' ? 'on' : ''} aria-current=${page === 'run' && 'page'} href=${runLink(id)}>Steps</a><a class=${page === 'chat' ? 'on' : ''} aria-current=${page === 'chat' && 'page'} href=${runLink(id, 'chat')}>Chat</a></nav>`}
    ${status?.message && status.status !== 'waiting_decision' && status.status !== 'done' && html`<p class=${`fix ${status.status}`}>${visible(status.message)}</p>`}
    ${(status?.blockedBelow ?? []).map((one) => html`<p class="fix blocked"><a href=${runLink(one.run)}>${visible(one.run)}</a>: ${visible(one.message)}</p>`)}
    ${status?.outcome?.error && html`<p class="fix blocked">${visible(status.outcome.error)}</p>`}
  </header>`;
}

/** The open requests of the run, and of the runs that it has called, in their place. */
function Pending({ id, status, reload }) {
  const [closed, setClosed] = useState(new Set());
  const all = [
    ...status.pending.map((one) => ({ ...one, run: id, agent: status.agent })),
    ...(status.below ?? []),
  ];
  return all.map((open) => {
    const key = `${open.run} ${open.id} ${open.digest}`;
    const toggle = () => setClosed((before) => (before.has(key) ? new Set([...before].filter((one) => one !== key)) : new Set([...before, key])));
    return html`<${RequestCard} key=${key} open=${open} isOpen=${!closed.has(key)} onToggle=${toggle} onDecided=${reload} showsRun=${open.run !== id} mayDecide=${open.run !== id || status.rights.includes('decide')} />`;
  });
}

function Answer({ outcome }) {
  if (!outcome || outcome.answer === null) return null;
  return html`<section class="answer"><h2>Answer</h2><p class="prose">${visible(outcome.answer)}</p></section>`;
}

export function RunPage({ id }) {
  const run = useRun(id);
  const { view, status, failure, error } = run;
  const [chosen, setChosen] = useState(null);
  const now = useNow(!view.end);
  useEffect(() => {
    const key = (event) => event.key === 'Escape' && setChosen(null);
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  if (failure) return html`<${Failure} error=${failure} />`;
  const working = workingModel(view, status);
  const items = working ? [...view.items, working] : view.items;
  const item = chosen === null ? null : items[chosen];
  const work = item?.work ?? (item?.result ? null : status?.inFlight?.find(({ on }) => on === item?.call?.id));
  return html`<div class=${item ? 'run with-panel' : 'run'}>
    <div class="main">
      <${Header} id=${id} run=${run} page="run" />
      <${Failure} error=${error} />
      ${status && html`<${Control} id=${id} status=${status} reload=${run.reload} />`}
      ${status && html`<${Pending} id=${id} status=${status} reload=${run.reload} />`}
      ${view.version === 0 && html`<p class="loading">Reading the history …</p>`}
      <ol class="steps">
        ${items.map((one, index) => html`<${Step} key=${index} item=${one} view=${view} now=${now} isChosen=${index === chosen} onChoose=${() => setChosen(index === chosen ? null : index)} />`)}
        <${Live} live=${view.live} />
        ${[...view.nodes.values()].map((live) => html`<${Live} key=${live.title} live=${live} />`)}
      </ol>
      <${Answer} outcome=${view.outcome ?? (view.open ? null : status?.outcome)} />
      ${view.version > 0 && html`<details class="graph"><summary>Graph</summary><${Graph} id=${id} version=${view.items.length} /></details>`}
    </div>
    ${item && html`<${Panel} item=${item} place=${chosen} work=${work} now=${now} onClose=${() => setChosen(null)} />`}
  </div>`;
}

function Bubble({ item }) {
  switch (item.type) {
    case 'user':
      return html`<li class="said user"><p>${visible(item.text)}</p>${item.by && html`<small>${who(item)}</small>`}</li>`;
    case 'reply':
      if (item.text === '' && item.struck?.length === 0) return null;
      return html`<li class="said agent">${item.struck?.map((text) => html`<del>${visible(text)}</del>`)}${item.text && html`<p>${visible(item.text)}</p>`}</li>`;
    case 'refused':
      return html`<li class="said agent"><del>${visible(item.text)}</del><small>${visible(item.problem)}</small></li>`;
    case 'call':
      return html`<li class="did"><span class=${`dot ${toneOf(item)}`}></span><code>${visible(item.call.name)}</code> ${visible(item.call.summary ?? '')}</li>`;
    case 'blocked':
      return item.to === null ? html`<li class="did bad">${visible(item.text)}</li>` : null;
    case 'outcome':
      return item.outcome.status === 'completed' ? null : html`<li class="did">${item.outcome.status}: ${item.outcome.reason}</li>`;
    default:
      return null;
  }
}

export function ChatPage({ id }) {
  const run = useRun(id);
  const { view, status, failure } = run;
  const [text, setText] = useState('');
  const [sent, setSent] = useState({ busy: false, error: null });
  // The same id until these words are delivered: a message that is sent twice is one message, and other words are another one.
  const message = useRef({ text: null, id: null });
  const end = useRef(null);
  useEffect(() => end.current?.scrollIntoView({ block: 'end' }), [view.version, status?.pending.length]);
  const send = async (event) => {
    event?.preventDefault();
    if (text.trim() === '' || sent.busy) return;
    if (message.current.text !== text) message.current = { text, id: crypto.randomUUID() };
    const mine = message.current;
    setSent({ busy: true, error: null });
    try {
      await post(runPath(id, '/messages'), { message: text, id: mine.id });
      if (message.current === mine) message.current = { text: null, id: null };
      // What was typed meanwhile stays.
      setText((now) => (now === text ? '' : now));
      setSent({ busy: false, error: null });
    } catch (error) {
      setSent({ busy: false, error });
    }
  };
  const key = (event) => event.key === 'Enter' && !event.shiftKey && !event.isComposing && send(event);
  if (failure) return html`<${Failure} error=${failure} />`;
  const mayTalk = status && status.status !== 'done' && status.rights.includes('talk');
  return html`<div class="chat">
    <${Header} id=${id} run=${run} page="chat" />
    <ol class="talk" aria-live="polite">
      ${view.items.map((item, index) => html`<${Bubble} key=${index} item=${item} />`)}
      ${view.live && html`<li class="said agent">${view.live.struck.map((one) => html`<del>${visible(one)}</del>`)}<p>${visible(view.live.text)}<span class="caret"></span></p></li>`}
    </ol>
    ${status && html`<${Pending} id=${id} status=${status} reload=${run.reload} />`}
    ${mayTalk && html`<form class="composer" onSubmit=${send}>
      <label class="hidden" for="composer">Message</label>
      <textarea id="composer" rows="2" placeholder="Message …" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${key}></textarea>
      <button class="primary" disabled=${sent.busy || text.trim() === ''}>Send</button>
    </form>`}
    <${Failure} error=${sent.error} />
    ${status && status.status === 'done' && html`<p class="hint">The run has ended.</p>`}
    <div ref=${end}></div>
  </div>`;
}
