/** A tag of a text, by itself: `<name …>`, `</name>` or `<name …/>`. */
export interface TagMark {
  readonly kind: 'open' | 'close' | 'empty';
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string>>;
}

const START = /<(\/?)([A-Za-z][\w.-]*)/g;
/** No value holds a `<`, as in XML: so a tag that is left open ends at the next one. */
const ATTRIBUTE = /\s+([\w:.-]+)(?:\s*=\s*(?:"([^"<]*)"|'([^'<]*)'|([^\s"'<>=`]+)))?/y;
const END = /\s*(\/?)>/y;

/** The tags of these names in a text, in order. What is no whole tag is text. Takes linear time. */
export function scanTags(text: string, names: ReadonlySet<string>): TagMark[] {
  const found: TagMark[] = [];
  const starts = new RegExp(START);
  for (let start = starts.exec(text); start; start = starts.exec(text)) {
    const [whole, slash, name = ''] = start;
    if (!names.has(name)) continue;
    const mark = readTag(text, { name, start: start.index, at: start.index + whole.length });
    if (mark === undefined) continue;
    const isClosing = slash === '/';
    if (isClosing && (mark.kind === 'empty' || Object.keys(mark.attributes).length > 0)) continue;
    found.push(isClosing ? { ...mark, kind: 'close' } : mark);
  }
  return found;
}

function readTag(
  text: string,
  begun: { readonly name: string; readonly start: number; readonly at: number },
): TagMark | undefined {
  const attributes: [string, string][] = [];
  let { at } = begun;
  for (let found = matchAt(ATTRIBUTE, text, at); found; found = matchAt(ATTRIBUTE, text, at)) {
    const [whole, name = '', double, single, bare] = found;
    if (name !== '__proto__') attributes.push([name, double ?? single ?? bare ?? '']);
    at += whole.length;
  }
  const end = matchAt(END, text, at);
  if (end === null) return undefined;
  return {
    kind: end[1] === '/' ? 'empty' : 'open',
    name: begun.name,
    start: begun.start,
    end: at + end[0].length,
    attributes: Object.fromEntries(attributes),
  };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
