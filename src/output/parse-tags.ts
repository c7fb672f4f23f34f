import type { Tag, TagSet } from '../core/definition/definition.js';
import type { ParsedAnswer } from '../core/reply.js';
import { headBytes } from '../tools/utf8.js';
import { findFences, type Fence } from './fences.js';
import { plainOutput, refusedOutput } from './plain-output.js';
import type { TagAnswer, XmlElement } from './tags.js';

const MAX_PROBLEM_BYTES = 4_000;

/** The elements of one name, and the opening tag that is left without a closing one behind them. */
interface Elements {
  readonly found: readonly XmlElement[];
  readonly left: TagMark | undefined;
}

/**
 * Reads an answer under declared tags. The output is a `TagAnswer`, also where the answer is not
 * accepted; the problem names all faults at once.
 *
 * Of elements inside an element of the same name the outermost counts. A required tag must occur; a
 * tag that is opened must be closed, unless a whole element of its name follows: prose mentions tags.
 * Names are exact, capitals included. Takes linear time.
 */
export function parseTags(tags: TagSet, text: string): ParsedAnswer {
  const names = new Set([...tags.xml.map(({ name }) => name), ...tags.signals]);
  const marks = byName(scanTags(text, names));
  const elements = tags.xml.map(
    (tag) => [tag, elementsOf(marks.get(tag.name) ?? [], text)] as const,
  );
  const fences = findFences(text);
  const answer: TagAnswer = {
    raw: text,
    xml: Object.fromEntries(elements.map(([{ name }, { found }]) => [name, found])),
    fences: Object.fromEntries(
      tags.fences.map(({ name }) => [name, blocksOf(name, fences).map(contentOf)]),
    ),
    signals: Object.fromEntries(
      tags.signals.map((name) => [name, (marks.get(name) ?? []).some(isSignal)]),
    ),
    unclosed: tags.fences.map(({ name }) => name).filter((name) => isUnclosed(name, fences)),
  };
  const problems = [
    ...elements.flatMap(([tag, each]) => xmlProblem(tag, each)),
    ...tags.fences.flatMap((tag) => fenceProblem(tag, fences)),
  ];
  const output = plainOutput(answer);
  if (!output.ok || problems.length === 0) return output;
  const problem = ['The answer does not have the form that is asked for:', ...problems].join(
    '\n- ',
  );
  return refusedOutput(headBytes(problem, MAX_PROBLEM_BYTES), output.output);
}

function byName(marks: readonly TagMark[]): ReadonlyMap<string, readonly TagMark[]> {
  const groups = new Map<string, TagMark[]>();
  for (const mark of marks) {
    const group = groups.get(mark.name);
    if (group === undefined) groups.set(mark.name, [mark]);
    else group.push(mark);
  }
  return groups;
}

/** A closing tag belongs to the nearest open one, so tags that prose only mentions spoil nothing. */
function elementsOf(marks: readonly TagMark[], text: string): Elements {
  const open: TagMark[] = [];
  const outermost: (readonly [TagMark, TagMark])[] = [];
  for (const mark of marks) {
    if (mark.kind === 'open') {
      open.push(mark);
      continue;
    }
    const begin = mark.kind === 'empty' ? mark : open.pop();
    if (begin === undefined) continue;
    while ((outermost.at(-1)?.[0].start ?? -1) > begin.start) outermost.pop();
    outermost.push([begin, mark]);
  }
  const lastEnd = outermost.at(-1)?.[1].end ?? 0;
  return {
    found: outermost.map(([begin, end]) => ({
      text: text.slice(begin.end, Math.max(begin.end, end.start)).trim(),
      attributes: begin.attributes,
    })),
    left: open.find(({ start }) => start >= lastEnd),
  };
}

function xmlProblem({ name, required }: Tag, { found, left }: Elements): string[] {
  if (left !== undefined) {
    return [
      `<${name}> at position ${left.start} is never closed: write </${name}> behind its content`,
    ];
  }
  if (!required || found.length > 0) return [];
  return [`<${name}> is missing: write <${name}>…</${name}>`];
}

function fenceProblem({ name, required }: Tag, fences: readonly Fence[]): string[] {
  if (!required || blocksOf(name, fences).length > 0) return [];
  const others = [...new Set(fences.map(({ word }) => word || 'one without a word'))].slice(0, 5);
  const came = others.length === 0 ? '' : ` (there is ${others.join(', ')})`;
  return [
    `a fenced block ${name} is missing${came}: open it with \`\`\`${name} on a line of its own`,
  ];
}

function blocksOf(name: string, fences: readonly Fence[]): Fence[] {
  return fences.filter(({ word }) => word === name);
}

function contentOf({ content }: Fence): string {
  return content;
}

function isUnclosed(name: string, fences: readonly Fence[]): boolean {
  const last = fences.at(-1);
  return last?.word === name && !last.closed;
}

function isSignal({ kind }: TagMark): boolean {
  return kind !== 'close';
}

/** A tag of a text, by itself: `<name …>`, `</name>` or `<name …/>`. */
interface TagMark {
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
function scanTags(text: string, names: ReadonlySet<string>): TagMark[] {
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
