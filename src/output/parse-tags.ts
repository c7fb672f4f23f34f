import type { Tag, TagSet } from '../core/definition/definition.js';
import type { ParsedAnswer } from '../core/reply.js';
import { headBytes } from '../tools/utf8.js';
import { findFences, type Fence } from './fences.js';
import { toPlainOutput, rejectOutput } from './plain-output.js';
import type { TagAnswer, XmlElement } from './tags.js';

const MAX_PROBLEM_BYTES = 4_000;

/** A single tag of a text: `<name …>`, `</name>` or `<name …/>`. */
interface TagMark {
  readonly kind: 'open' | 'close' | 'empty';
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The elements of one name, and an opening tag after them that is never closed. */
interface Elements {
  readonly found: readonly XmlElement[];
  readonly unclosed: TagMark | undefined;
}

/**
 * Parses an answer with declared tags. The output is a `TagAnswer`, also for a rejected answer; the
 * problem names all faults at once.
 *
 * Of nested elements with one name, the outermost counts. A required tag must occur. An opened tag
 * must be closed, unless a whole element of its name follows, since prose mentions tags. Names are
 * case-sensitive. Takes linear time.
 */
export function parseTags(tags: TagSet, text: string): ParsedAnswer {
  const names = new Set([...tags.xml.map(({ name }) => name), ...tags.signals]);
  const marks = groupByName(scanTags(text, names));
  const elements = tags.xml.map(
    (tag) => [tag, findElements(marks.get(tag.name) ?? [], text)] as const,
  );
  const fences = findFences(text);
  const answer: TagAnswer = {
    raw: text,
    xml: Object.fromEntries(elements.map(([{ name }, { found }]) => [name, found])),
    fences: Object.fromEntries(
      tags.fences.map(({ name }) => [name, findBlocks(name, fences).map(({ content }) => content)]),
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
  const output = toPlainOutput(answer);
  if (!output.ok || problems.length === 0) return output;
  const problem = ['The answer does not have the required form:', ...problems].join('\n- ');
  return rejectOutput(headBytes(problem, MAX_PROBLEM_BYTES), output.output);
}

function groupByName(marks: readonly TagMark[]): ReadonlyMap<string, readonly TagMark[]> {
  const groups = new Map<string, TagMark[]>();
  for (const mark of marks) {
    const group = groups.get(mark.name);
    if (group === undefined) groups.set(mark.name, [mark]);
    else group.push(mark);
  }
  return groups;
}

/** Matches a closing tag with the nearest open one, so a tag mentioned in prose does no harm. */
function findElements(marks: readonly TagMark[], text: string): Elements {
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
    unclosed: open.find(({ start }) => start >= lastEnd),
  };
}

function xmlProblem({ name, required }: Tag, { found, unclosed }: Elements): string[] {
  if (unclosed !== undefined) {
    return [
      `<${name}> at position ${unclosed.start} is never closed: write </${name}> after its content`,
    ];
  }
  if (!required || found.length > 0) return [];
  return [`<${name}> is missing: write <${name}>…</${name}>`];
}

function fenceProblem({ name, required }: Tag, fences: readonly Fence[]): string[] {
  if (!required || findBlocks(name, fences).length > 0) return [];
  const others = [...new Set(fences.map(({ word }) => word || 'one without a word'))].slice(0, 5);
  const present = others.length === 0 ? '' : ` (found ${others.join(', ')})`;
  return [
    `a fenced block ${name} is missing${present}: open it with \`\`\`${name} on a line of its own`,
  ];
}

function findBlocks(name: string, fences: readonly Fence[]): Fence[] {
  return fences.filter(({ word }) => word === name);
}

function isUnclosed(name: string, fences: readonly Fence[]): boolean {
  const last = fences.at(-1);
  return last?.word === name && !last.closed;
}

function isSignal({ kind }: TagMark): boolean {
  return kind !== 'close';
}

const START = /<(\/?)([A-Za-z][\w.-]*)/g;
/** As in XML, no value contains a `<`, so an incomplete tag ends at the next one. */
const ATTRIBUTE = /\s+([\w:.-]+)(?:\s*=\s*(?:"([^"<]*)"|'([^'<]*)'|([^\s"'<>=`]+)))?/y;
const END = /\s*(\/?)>/y;

/** Finds the tags of these names, in order. An incomplete tag is text. Takes linear time. */
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
  from: { readonly name: string; readonly start: number; readonly at: number },
): TagMark | undefined {
  const attributes: [string, string][] = [];
  let { at } = from;
  for (let found = matchAt(ATTRIBUTE, text, at); found; found = matchAt(ATTRIBUTE, text, at)) {
    const [whole, name = '', double, single, bare] = found;
    if (name !== '__proto__') attributes.push([name, double ?? single ?? bare ?? '']);
    at += whole.length;
  }
  const end = matchAt(END, text, at);
  if (end === null) return undefined;
  return {
    kind: end[1] === '/' ? 'empty' : 'open',
    name: from.name,
    start: from.start,
    end: at + end[0].length,
    attributes: Object.fromEntries(attributes),
  };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
