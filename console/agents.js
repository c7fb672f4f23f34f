// The agents: what they are for, a form that starts one, and the last runs.
import { get, post } from './api.js';
import { parseJson, readNumber } from './form.js';
import { Empty, Failure, Status, ago, runLink, useLoaded, useNow, visible } from './parts.js';
import { html, useState } from './vendor/htm-preact.js';

export function RunRows({ rows, showsAgent = true }) {
  const now = useNow();
  return html`<ul class="runs">
    ${rows.map(
      (row) => html`<li key=${row.runId}>
        <a href=${runLink(row.id)}>
          <span class="id">${visible(row.givenId ?? row.id)}</span>
          <${Status} name=${row.status} />
          ${showsAgent && html`<span class="agent">${visible(row.agent ?? '–')}</span>`}
          ${row.blockedBelow && html`<span class="reason">blocked below</span>`}
          ${!row.blockedBelow && row.reason && row.reason !== row.status && html`<span class="reason">${visible(row.reason)}</span>`}
          <time>${ago(Date.parse(row.startedAt), now)}</time>
        </a>
      </li>`,
    )}
  </ul>`;
}

/** One field of a form from a JSON schema. Objects and lists are written as JSON. What is there first is a default, so that rendering again changes no field. */
function Field({ name, schema, isRequired }) {
  const { type, enum: choices, description, default: preset } = schema;
  const title = html`<span>${name}${isRequired ? '' : html` <i>optional</i>`}${description && html` <i>${description}</i>`}</span>`;
  if (choices) return html`<label>${title}<select name=${name}>${!isRequired && html`<option value=""></option>`}${choices.map((one) => html`<option value=${JSON.stringify(one)}>${String(one)}</option>`)}</select></label>`;
  if (type === 'boolean') return html`<label class="check"><input type="checkbox" name=${name} defaultChecked=${preset === true} /> ${title}</label>`;
  if (type === 'number' || type === 'integer') return html`<label>${title}<input name=${name} type="number" step=${type === 'integer' ? 1 : 'any'} required=${isRequired} defaultValue=${preset} /></label>`;
  if (type === 'string') return html`<label>${title}<input name=${name} required=${isRequired} defaultValue=${preset} autocomplete="off" /></label>`;
  return html`<label>${title}<textarea name=${name} rows="3" placeholder="JSON" spellcheck="false" required=${isRequired}></textarea></label>`;
}

function Fields({ schema }) {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).map(([name, one]) => html`<${Field} key=${name} name=${name} schema=${one} isRequired=${required.includes(name)} />`);
}

/** Reads the fields of a schema from a form. Throws a text for people. */
function readFields({ properties = {} }, data) {
  const values = Object.entries(properties).flatMap(([name, { type, enum: choices }]) => {
    const given = data.get(name);
    if (type === 'boolean') return [[name, given !== null]];
    if (given === null || given === '') return [];
    if (choices) return [[name, JSON.parse(given)]];
    if (type === 'number' || type === 'integer') return [[name, readNumber(given, name)]];
    if (type === 'string') return [[name, given]];
    return [[name, parseJson(given, 'expected JSON', name)]];
  });
  return Object.fromEntries(values);
}

function Start({ agent }) {
  const [state, setState] = useState({ busy: false, error: null });
  // The same operation until the form is changed: a second click starts no second run.
  const [operation, setOperation] = useState(crypto.randomUUID());
  const submit = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    try {
      const data = new FormData(event.target);
      const message = data.get('perdure-message');
      const isOpen = data.get('perdure-open') !== null;
      const id = data.get('perdure-id');
      const steps = data.get('perdure-steps');
      const started = await post(
        '/v1/runs',
        {
          agent: agent.name,
          ...(message && { message }),
          ...(agent.input && { input: readFields(agent.input, data) }),
          ...(agent.args && { args: readFields(agent.args, data) }),
          ...(isOpen && { open: true }),
          ...(id && { id }),
          ...(steps && { limits: { steps: Number(steps) } }),
        },
        operation,
      );
      location.hash = runLink(started.id, isOpen ? 'chat' : 'run');
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  const key = (event) => event.key === 'Enter' && (event.metaKey || event.ctrlKey) && event.target.form.requestSubmit();
  return html`<form class="start" onSubmit=${submit} onInput=${() => setOperation(crypto.randomUUID())}>
    ${agent.args && html`<${Fields} schema=${agent.args} />`}
    ${agent.input ? html`<${Fields} schema=${agent.input} />` : html`<label>Message<textarea name="perdure-message" rows="3" required onKeyDown=${key}></textarea></label>`}
    <details><summary>More</summary>
      <label>Id of the run <i>optional</i><input name="perdure-id" autocomplete="off" /></label>
      ${agent.rights.includes('control') && html`<label>Steps at most <i>optional</i><input name="perdure-steps" type="number" min="1" /></label>`}
    </details>
    <div class="buttons"><button class="primary" disabled=${state.busy}>Start</button><label class="check"><input type="checkbox" name="perdure-open" /> keep it open, to chat</label></div>
    <${Failure} error=${state.error} />
  </form>`;
}

const LIMIT_WORDS = { toolCalls: 'tool calls', costUsd: 'US dollars', wall: 'time', depth: 'depth of calls' };

function Limits({ limits: { turn, run } }) {
  const names = Object.keys({ ...turn, ...run });
  const texts = (name) => [turn[name] && `${turn[name]} each turn`, run[name] && `${run[name]} in the whole run`].filter(Boolean).join(', ');
  return html`<div>
    <h2>Limits</h2>
    <dl class="rows limits">${names.map((name) => html`<div key=${name}><dt>${LIMIT_WORDS[name] ?? name}</dt><dd>${texts(name)}</dd></div>`)}</dl>
  </div>`;
}

export function AgentsPage({ name }) {
  const { value, error } = useLoaded(() => get('/v1/agents'), []);
  const agents = value?.agents ?? [];
  const chosen = agents.find((one) => one.name === name) ?? agents[0];
  const runs = useLoaded(() => (chosen ? get('/v1/runs', { agent: chosen.name, limit: 10 }) : Promise.resolve(null)), [chosen?.name], { every: 5_000 });
  if (error) return html`<${Failure} error=${error} />`;
  if (value && !chosen) return html`<${Empty} title="No agents"><p>The configuration lists none that you may use.</p><//>`;
  if (!chosen) return html`<p class="loading">Loading …</p>`;
  return html`<div class="agents">
    <nav class="list" aria-label="agents">${agents.map((one) => html`<a key=${one.name} class=${one === chosen ? 'on' : ''} aria-current=${one === chosen && 'page'} href=${`#/agents/${encodeURIComponent(one.name)}`}><b>${one.name}</b>${one.graph && html` <span class="pill calm">graph</span>`}<small>${visible(one.description)}</small></a>`)}</nav>
    <section>
      <h1>${chosen.name}</h1>
      ${chosen.description && html`<p class="lead">${visible(chosen.description)}</p>`}
      ${chosen.rights.includes('start') ? html`<${Start} key=${chosen.name} agent=${chosen} />` : html`<p class="hint">You may not start this agent.</p>`}
      <div class="beside">
        <div>
          <h2>Last runs</h2>
          <${Failure} error=${runs.error} />
          ${runs.value?.rows.length === 0 && html`<p class="hint">None yet.</p>`}
          ${runs.value && html`<${RunRows} rows=${runs.value.rows} showsAgent=${false} />`}
        </div>
        <${Limits} limits=${chosen.limits} />
      </div>
    </section>
  </div>`;
}

const FILTERS = ['', 'waiting_decision', 'working', 'blocked', 'waiting_message', 'ended'];

/** The runs of a status. Below older pages, the newest one stays as it was: a run that a later one pushes out of it is on no other page. */
function RunList({ status }) {
  const [older, setOlder] = useState({ pages: [], busy: false, error: null });
  const { value, error } = useLoaded(() => get('/v1/runs', { status, limit: 30 }), [], { every: 5_000 });
  const pages = older.pages.length > 0 ? older.pages : value ? [value] : [];
  // A run that has ended meanwhile may be on a second page, too.
  const rows = [...new Map(pages.flatMap((page) => page.rows).map((row) => [row.runId, row])).values()];
  const { cursor } = pages.at(-1) ?? {};
  const next = async () => {
    setOlder({ ...older, busy: true, error: null });
    try {
      const page = await get('/v1/runs', { status, limit: 30, cursor });
      setOlder({ pages: [...pages, page], busy: false, error: null });
    } catch (failure) {
      setOlder({ ...older, busy: false, error: failure });
    }
  };
  return html`
    <${Failure} error=${error} />
    ${older.pages.length > 0 && html`<p class="hint">Newer runs are not shown. <button class="quiet" onClick=${() => setOlder({ pages: [], busy: false, error: null })}>Back to the newest</button></p>`}
    ${value && rows.length === 0 && html`<${Empty} title="No runs"><p><a href="#/agents">Start one</a></p><//>`}
    <${RunRows} rows=${rows} />
    <${Failure} error=${older.error} />
    ${cursor && html`<button class="quiet" disabled=${older.busy} onClick=${next}>Older</button>`}
  `;
}

export function RunsPage() {
  const [status, setStatus] = useState('');
  const words = { '': 'all', waiting_decision: 'wait for a person', waiting_message: 'wait for a message' };
  return html`<div class="runs-page">
    <h1>Runs</h1>
    <div class="chips" role="group" aria-label="status">${FILTERS.map((one) => html`<button key=${one} class=${one === status ? 'on' : ''} aria-pressed=${one === status} onClick=${() => setStatus(one)}>${words[one] ?? one}</button>`)}</div>
    <${RunList} key=${status} status=${status} />
  </div>`;
}
