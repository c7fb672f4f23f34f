const SPACE = /[\t\n\r ]*/y;
const PLAIN = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const LITERAL = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;

const SAMPLE_AROUND = 30;

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma' | 'end';
type Scanned = { readonly ok: boolean; readonly at: number };

/** How far a JSON value extends from its start. */
export interface ScannedValue {
  readonly complete: boolean;
  /** The offset after a complete value, or of the first wrong character. */
  readonly at: number;
  /** How many keys were read with their colons. */
  readonly keys: number;
  /** What was expected at the fault, for `describeExpected`. */
  readonly expected: Expected | 'closing quote';
  /** The bracket that is open at the fault. */
  readonly inside: string | undefined;
}

/**
 * Returns the offset in UTF-16 units where a text stops being JSON; `text.length` if it only ends
 * too early. The messages of `JSON.parse` lack the position in half of the cases, and differ by
 * version.
 */
export function jsonFaultPosition(text: string): number {
  const { complete, at } = scanJsonValue(text, matchAt(SPACE, text, 0));
  return complete ? at + matchAt(SPACE, text, at) : at;
}

/**
 * Describes the fault with a short sample of the text; `ending` starts the sentence about a
 * truncated text.
 */
export function describeFault(
  text: string,
  position: number,
  { ending }: { readonly ending: string },
): string {
  const around = JSON.stringify(
    text.slice(Math.max(0, position - SAMPLE_AROUND), position + SAMPLE_AROUND),
  );
  return position >= text.length
    ? `${ending} too early, after ${text.length} characters, with ${around}`
    : `character ${JSON.stringify(text[position])} at position ${position} is wrong, in ${around}`;
}

/** Scans one JSON value from `start` and nothing after it, in time proportional to the value. */
export function scanJsonValue(text: string, start: number): ScannedValue {
  const open: string[] = [];
  let expected: Expected = 'value';
  let keys = 0;
  let at = start;
  for (; at < text.length; at += matchAt(SPACE, text, at)) {
    const character = text[at] ?? '';
    const inside = open.at(-1);
    if (closes(character, expected, inside)) {
      open.pop();
      expected = open.length === 0 ? 'end' : 'comma';
      at += 1;
    } else if (expected === 'colon' || expected === 'comma') {
      if (character !== (expected === 'colon' ? ':' : ',')) break;
      if (expected === 'colon') keys += 1;
      expected = expected === 'comma' && inside === '{' ? 'key' : 'value';
      at += 1;
    } else if (expected.startsWith('value') && (character === '{' || character === '[')) {
      open.push(character);
      expected = character === '{' ? 'key or }' : 'value or ]';
      at += 1;
    } else {
      const isKey = expected.startsWith('key');
      const scanned = isKey || character === '"' ? scanString(text, at) : scanLiteral(text, at);
      const inText = scanned.at > at && text[at] === '"';
      at = scanned.at;
      if (!scanned.ok) {
        return { complete: false, at, keys, expected: inText ? 'closing quote' : expected, inside };
      }
      if (isKey) expected = 'colon';
      else expected = open.length === 0 ? 'end' : 'comma';
    }
    if (expected === 'end') return { complete: true, at, keys, expected, inside };
  }
  return { complete: false, at, keys, expected, inside: open.at(-1) };
}

/** Describes what was expected where a value breaks off. */
export function describeExpected({ expected, inside }: ScannedValue): string {
  switch (expected) {
    case 'closing quote':
      return 'the closing quote (in a text, line breaks are \\n and quotes \\")';
    case 'colon':
      return '":"';
    case 'comma':
      return `"," or "${inside === '{' ? '}' : ']'}"`;
    case 'key':
      return 'a key in double quotes';
    case 'key or }':
      return 'a key in double quotes or "}"';
    case 'value':
      return 'a value';
    case 'value or ]':
      return 'a value or "]"';
    case 'end':
      return 'nothing more';
  }
}

function closes(character: string, expected: Expected, inside: string | undefined): boolean {
  if (character === '}') {
    return inside === '{' && (expected === 'comma' || expected === 'key or }');
  }
  return character === ']' && inside === '[' && (expected === 'comma' || expected === 'value or ]');
}

/** Scans in parts: one expression for the whole string would exhaust the stack on long strings. */
function scanString(text: string, start: number): Scanned {
  if (text[start] !== '"') return { ok: false, at: start };
  let at = start + 1;
  for (;;) {
    at += matchAt(PLAIN, text, at);
    if (text[at] === '"') return { ok: true, at: at + 1 };
    const escape = matchAt(ESCAPE, text, at);
    if (escape === 0) return { ok: false, at };
    at += escape;
  }
}

function scanLiteral(text: string, at: number): Scanned {
  const length = matchAt(LITERAL, text, at);
  return { ok: length > 0, at: at + length };
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}
