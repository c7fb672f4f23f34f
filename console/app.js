// The console: an inbox of what waits for people, runs, chats, and agents. See docs/server.md.
import { get, hasKey, setKey } from './api.js';
import { AgentsPage, RunsPage } from './agents.js';
import { Empty, Failure, useLoaded, visible } from './parts.js';
import { RequestCard, decide } from './request.js';
import { ChatPage, RunPage } from './run.js';
import { html, render, useEffect, useRef, useState } from './vendor/htm-preact.js';

const keyOf = ({ run, id, digest }) => `${run} ${id} ${digest}`;

function useInbox() {
  return useLoaded(() => get('/v1/requests'), [], { every: 3_000 });
}

/** Decides about all requests of one tool that are shown in full. */
function Batch({ tool, shown, onDecided }) {
  const [state, setState] = useState({ busy: false, error: null });
  const all = async (as) => {
    setState({ busy: true, error: null });
    const failed = [];
    for (const { open, request } of shown) {
      try {
        await decide(open.run, [{ request: request.id, digest: request.digest, as }]);
      } catch (error) {
        failed.push(error);
      }
    }
    setState({ busy: false, error: failed[0] ?? null });
    onDecided();
  };
  if (shown.length < 2) return null;
  return html`<div class="batch" role="group" aria-label="decide about several">
    <span>${shown.length} requests for <b>${visible(tool)}</b>, all shown in full</span>
    <button class="primary" disabled=${state.busy} onClick=${() => all('approve')}>Approve ${shown.length}</button>
    <button class="danger" disabled=${state.busy} onClick=${() => all('deny')}>Deny ${shown.length}</button>
    <${Failure} error=${state.error} />
  </div>`;
}

function InboxPage({ inbox }) {
  const { value, error, reload } = inbox;
  const [open, setOpen] = useState(new Set());
  const [tool, setTool] = useState(null);
  const [decided, setDecided] = useState(new Map());
  const [shown, setShown] = useState(new Map());
  const [batch, setBatch] = useState(0);
  const list = useRef(null);
  const requests = (value?.requests ?? []).filter((one) => tool === null || one.tool === tool);
  const tools = [...new Set((value?.requests ?? []).flatMap((one) => one.tool ?? []))];
  const toggle = (key) => setOpen((before) => (before.has(key) ? new Set([...before].filter((one) => one !== key)) : new Set([...before, key])));
  useEffect(() => {
    const press = (event) => {
      if (event.target.closest?.('input, textarea, select') || event.metaKey || event.ctrlKey || event.altKey) return;
      const cards = [...(list.current?.querySelectorAll('.request') ?? [])];
      const at = cards.findIndex((card) => card.contains(document.activeElement));
      const go = (to) => cards[Math.max(0, Math.min(cards.length - 1, to))]?.querySelector('.summary')?.focus();
      if (event.key === 'j') go(at + 1);
      else if (event.key === 'k') go(at - 1);
      else if (at >= 0 && (event.key === 'a' || event.key === 'd')) {
        // A card that is closed has no button, so nothing is decided unseen. The key moves to it; Enter presses it.
        cards[at].querySelector(event.key === 'a' ? '[data-as=approve]' : '[data-as=deny]')?.focus();
      } else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  const inFull = requests.flatMap((one) => {
    const request = open.has(keyOf(one)) ? shown.get(keyOf(one)) : undefined;
    return request ? [{ open: one, request }] : [];
  });
  return html`<div class="inbox">
    <h1>Inbox</h1>
    <${Failure} error=${error} />
    ${tools.length > 1 && html`<div class="chips" role="group" aria-label="tool"><button class=${tool === null ? 'on' : ''} aria-pressed=${tool === null} onClick=${() => setTool(null)}>all</button>${tools.map((one) => html`<button key=${one} class=${tool === one ? 'on' : ''} aria-pressed=${tool === one} onClick=${() => setTool(one)}>${visible(one)}</button>`)}</div>`}
    ${requests.length > 1 && html`<p class="hint"><button class="quiet" onClick=${() => setOpen(new Set(requests.map(keyOf)))}>Show all in full</button> <span class="keys"><kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>a</kbd> <kbd>d</kbd> choose a button</span></p>`}
    ${tools.map((one) => html`<${Batch} key=${one} tool=${one} shown=${inFull.filter((each) => each.open.tool === one && each.open.kind === 'approval' && !each.request.checking)} onDecided=${() => (setBatch((before) => before + 1), reload())} />`)}
    <div ref=${list}>
      ${requests.map((one) => {
        const key = keyOf(one);
        return html`<${RequestCard} key=${key} open=${one} batch=${batch} isOpen=${open.has(key)} onToggle=${() => toggle(key)} onShown=${(request) => setShown((before) => new Map(before).set(key, request))} onDecided=${(which, as) => (setDecided((before) => new Map(before).set(key, as)), setTimeout(reload, 500))} />`;
      })}
    </div>
    ${value && requests.length === 0 && html`<${Empty} title="Nothing waits for you"><p>${decided.size > 0 ? `${decided.size} decided. ` : ''}Requests appear here by themselves.</p><//>`}
    ${value?.more && html`<p class="hint">There are more than these.</p>`}
    ${value?.unreadable.length > 0 && html`<p class="hint">${value.unreadable.length} waiting runs cannot be read here: ${visible(value.unreadable[0].why)}</p>`}
    ${!value && !error && html`<p class="loading">Loading …</p>`}
  </div>`;
}

/** Asks for a key. `error`: why the one of this tab is of no use, unless it is unknown. */
function SignIn({ onKey, error }) {
  const [problem, setProblem] = useState(error);
  const submit = (event) => {
    event.preventDefault();
    const key = new FormData(event.target).get('key').trim();
    // A header takes no other character, and the server has no such key.
    if (!/^[\x21-\x7e]+$/.test(key)) return setProblem({ message: 'A key has visible ASCII characters only, and no space.' });
    setKey(key);
    onKey();
  };
  return html`<main class="sign-in"><form onSubmit=${submit}>
    <h1>perdure</h1>
    <label>Key<input name="key" type="password" autocomplete="current-password" required autofocus /></label>
    <p class="hint">One of PERDURE_SERVE_KEYS, or a token. It stays in this tab.</p>
    <${Failure} error=${problem} />
    <button class="primary">Open</button>
  </form></main>`;
}

/** A part of an address that somebody has cut is shown as it is. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function useRoute() {
  const read = () => location.hash.replace(/^#\/?/, '').split('/').map(decode);
  const [route, setRoute] = useState(read());
  useEffect(() => {
    const change = () => (setRoute(read()), scrollTo(0, 0));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem('perdure-theme') ?? 'auto');
  useEffect(() => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem('perdure-theme', theme);
  }, [theme]);
  return [theme, () => setTheme({ auto: 'light', light: 'dark', dark: 'auto' }[theme])];
}

function App() {
  const me = useLoaded(() => get('/v1/me'), []);
  const inbox = useInbox();
  const [page = 'inbox', id] = useRoute();
  const [theme, changeTheme] = useTheme();
  useEffect(() => {
    const count = inbox.value?.requests.length ?? 0;
    document.title = `${count > 0 ? `(${count}) ` : ''}${page === 'run' || page === 'chat' ? visible(id ?? '') : 'perdure'}`;
  }, [inbox.value, page, id]);
  const isUnknown = me.error?.status === 401;
  if (isUnknown || (me.error && hasKey())) return html`<${SignIn} error=${isUnknown ? null : me.error} onKey=${() => location.reload()} />`;
  if (me.error && !me.value) return html`<main><${Failure} error=${me.error} /></main>`;
  const tab = { chat: 'run' }[page] ?? page;
  const count = inbox.value?.requests.length ?? 0;
  const isOn = (name) => tab === name || (name === 'runs' && tab === 'run') || (name === 'inbox' && tab === '');
  const link = (name, words) => html`<a href=${`#/${name}`} class=${isOn(name) ? 'on' : ''} aria-current=${isOn(name) && 'page'}>${words}</a>`;
  return html`
    <header class="top">
      <a class="brand" href="#/inbox" aria-label="perdure"><img src="/console/icon.svg" alt="" width="22" height="22" /><b>perdure</b></a>
      <nav aria-label="pages">${link('inbox', html`Inbox${count > 0 && html` <span class="count">${count}</span>`}`)}${link('runs', 'Runs')}${link('agents', 'Agents')}</nav>
      <span class="me">
        <button class="quiet" onClick=${changeTheme} title="light, dark, or as the system" aria-label=${`colors: ${theme}`}>${{ auto: '◐', light: '☀', dark: '☾' }[theme]}</button>
        ${me.value && html`<span title=${me.value.verified ? 'verified by its key' : 'this server has no keys'}>${visible(me.value.name.replace(/^unverified:os-user:/, ''))}</span>`}
      </span>
    </header>
    <main>
      ${page === 'run' && id ? html`<${RunPage} key=${id} id=${id} />` : page === 'chat' && id ? html`<${ChatPage} key=${id} id=${id} />` : page === 'runs' ? html`<${RunsPage} />` : page === 'agents' ? html`<${AgentsPage} name=${id} />` : html`<${InboxPage} inbox=${inbox} />`}
    </main>
  `;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
