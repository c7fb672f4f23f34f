// What all pages share: words, times, and small components.
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

/** Characters that cannot be seen, or that change the order of others; those of `src/core/text/text.ts`. */
const HIDDEN = /(?![\n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const PICTURE = /\p{Extended_Pictographic}(?:\p{Emoji_Modifier}\ufe0f?|[\ufe0e\ufe0f])?/u;
/** Where such a character is part of ordinary writing, and cannot hide a message; as there. */
const WRITING = [
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/u,
  new RegExp(`${PICTURE.source}(?:\\u200d${PICTURE.source})*`, 'u'),
  /[0-9#*]\ufe0f\u20e3/u,
  /(?<=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}])(?<![\p{P}\p{Default_Ignorable_Code_Point}])[\u200c\u200d]/u,
  /(?<=\p{Script=Han})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]/u,
  /(?<=\p{Sm})\ufe00/u,
  /(?<=\p{Script=Mongolian})(?<!\p{Default_Ignorable_Code_Point})[\u180b-\u180f]/u,
];
const PARTS = new RegExp(`(${WRITING.map(({ source }) => source).join('|')})|(${HIDDEN.source})`, 'gu');
const PLAIN = /^[\n\t\u0020-\u007e]*$/;

const replaceHidden = (text, instead) =>
  PLAIN.test(text) ? text : text.replace(PARTS, (part, writing) => (writing === undefined ? instead(part) : part));

/** Returns a text in which hidden characters are escapes. */
export const visible = (text) =>
  replaceHidden(String(text).replaceAll('\r\n', '\n'), (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

/** Returns JSON in which hidden characters are JSON escapes: the same value, to be edited. */
export const visibleJson = (json) =>
  replaceHidden(json, (one) => one.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''));

/** Returns the first number outside of the strings of a JSON text that `JSON.parse` changes; undefined if there is none. */
export function changingNumber(json) {
  const parts = json.match(/"[^"\\]*(?:\\[^][^"\\]*)*"|-?\d[\d.eE+-]*/g) ?? [];
  return parts.find((one) => !one.startsWith('"') && isChanging(one));
}

/** Whether a number is another one in a program, as the server decides it in `src/core/text/json.ts`. */
function isChanging(token) {
  const value = Number(token);
  if (!Number.isFinite(value)) return true;
  if (value === 0) return /^-?[\d.]*[1-9]/.test(token);
  const [whole = ''] = /^-?\d+(?=(?:\.0+)?$)/.exec(token) ?? [];
  if (whole !== '') return !Number.isSafeInteger(value) && String(value) !== whole;
  const [mantissa] = token.split(/e/i, 1);
  const digits = mantissa.replaceAll(/[-.]/g, '').replace(/^0+/, '');
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && digits.length > 17;
}

/** Who did something, and which door has verified it. */
export const who = ({ by, door }) => visible(by) + (door ? ` (verified by ${visible(door)})` : '');

export const money = (usd) => (usd === null || usd === undefined ? '–' : usd === 0 ? '$0' : `$${usd < 0.01 ? usd.toFixed(4) : usd.toFixed(2)}`);

export function duration(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

export const ago = (at, now = Date.now()) => `${duration(Math.max(0, now - Number(at)))} ago`;

/** Counts of tokens, such as 12.3k. */
export const short = (n) => (n < 10_000 ? String(n) : `${(n / 1_000).toFixed(n < 100_000 ? 1 : 0)}k`);

/** The words for statuses, with the color of each. */
const STATUSES = {
  working: ['working', 'busy'],
  waiting_message: ['waits for a message', 'calm'],
  waiting_decision: ['waits for you', 'asks'],
  waiting_time: ['waits', 'calm'],
  blocked: ['blocked', 'bad'],
  paused: ['paused', 'calm'],
  completed: ['completed', 'good'],
  stopped: ['stopped', 'asks'],
  cancelled: ['canceled', 'calm'],
  failed: ['failed', 'bad'],
  unknown: ['unknown', 'calm'],
};

export function Status({ name }) {
  const [words, tone] = STATUSES[name] ?? [name, 'calm'];
  return html`<span class=${`pill ${tone}`}>${words}</span>`;
}

export const statusOf = ({ status, outcome }) =>
  status === 'done' ? (outcome?.status ?? 'unknown') : status;

export function Failure({ error }) {
  if (!error) return null;
  return html`<div class="failure" role="alert">
    <strong>${visible(error.message)}</strong>
    ${error.fix && html`<span>${visible(error.fix)}</span>`}
  </div>`;
}

/**
 * Loads a value for `keys`; again every `every` ms while the page is shown, and when one of `changes`
 * changes. A value stays until the next one is there, so what a person is writing about it stays, too.
 */
export function useLoaded(load, keys, { every = 0, changes = [] } = {}) {
  const [state, setState] = useState({ value: null, error: null });
  const again = useRef(() => undefined);
  useEffect(() => {
    let over = false;
    let [begun, shown] = [0, 0];
    const once = async () => {
      const number = (begun += 1);
      const show = (next) => {
        // An answer that was overtaken by a later one is old.
        if (over || number < shown) return;
        shown = number;
        setState(next);
      };
      try {
        const value = await load();
        show({ value, error: null });
      } catch (error) {
        show((before) => ({ ...before, error }));
      }
    };
    again.current = once;
    setState({ value: null, error: null });
    void once();
    return () => {
      over = true;
    };
  }, keys);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) void again.current();
    isFirst.current = false;
  }, changes);
  useEffect(() => {
    if (every === 0) return undefined;
    const timer = setInterval(() => document.hidden || again.current(), every);
    return () => clearInterval(timer);
  }, [every]);
  return { ...state, reload: () => again.current() };
}

/** Renders again every second, for ages and live bars. */
export function useNow(isOn = true) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}

export const runLink = (id, page = 'run') => `#/${page}/${encodeURIComponent(id)}`;

/** JSON for people, line by line; a text that is no JSON, or that has a number that would change, as it is. */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return visible(changingNumber(text) === undefined ? JSON.stringify(value, null, 2) : text);
  } catch {
    return visible(text);
  }
}

export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}
