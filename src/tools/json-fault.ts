const SPACE = /[\t\n\r ]*/y;
const PLAIN = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const LITERAL = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma' | 'end';
type Scanned = { readonly ok: boolean; readonly at: number };

/**
 * Where a text stops being JSON, as an offset in UTF-16 units; `text.length` when it only ends too
 * early. The messages of `JSON.parse` name no position in half of the cases, and differ by version.
 */
export function jsonFaultPosition(text: string): number {
  const open: string[] = [];
  let expected: Expected = 'value';
  let at = matchAt(SPACE, text, 0);
  for (; at < text.length; at += matchAt(SPACE, text, at)) {
    const character = text[at] ?? '';
    const inside = open.at(-1);
    if (closes(character, expected, inside)) {
      open.pop();
      expected = open.length === 0 ? 'end' : 'comma';
      at += 1;
    } else if (expected === 'colon' || expected === 'comma') {
      if (character !== (expected === 'colon' ? ':' : ',')) return at;
      expected = expected === 'comma' && inside === '{' ? 'key' : 'value';
      at += 1;
    } else if (expected === 'end') {
      return at;
    } else if (expected.startsWith('value') && (character === '{' || character === '[')) {
      open.push(character);
      expected = character === '{' ? 'key or }' : 'value or ]';
      at += 1;
    } else {
      const isKey = expected.startsWith('key');
      const scanned = isKey || character === '"' ? scanString(text, at) : scanLiteral(text, at);
      at = scanned.at;
      if (!scanned.ok) return at;
      if (isKey) expected = 'colon';
      else expected = open.length === 0 ? 'end' : 'comma';
    }
  }
  return at;
}

function closes(character: string, expected: Expected, inside: string | undefined): boolean {
  if (character === '}') {
    return inside === '{' && (expected === 'comma' || expected === 'key or }');
  }
  return character === ']' && inside === '[' && (expected === 'comma' || expected === 'value or ]');
}

/** Piece by piece: one expression for a whole string exhausts the engine's stack on long ones. */
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
