import { z } from 'zod';
import type { Tag, TagSet } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/agent-types.js';
import { InputError } from '../core/errors.js';
import type { Json } from '../core/text/json.js';
import type { ParsedAnswer } from '../core/transcript/outcome.js';
import { headBytes, toPlain } from '../tools/result/plain.js';
import { type OptionSchemas, checkOptions } from '../validation/check-options.js';
import { type Fence, findFences } from './extract-json.js';

const MAX_BYTES = 256 * 1024;

/**
 * Converts the result of a schema or parser to JSON of at most 256 KiB, since it goes into the
 * history.
 */
export function toPlainOutput(value: unknown): ParsedAnswer {
  const output = toPlain(value);
  const bytes = jsonBytes(output);
  if (bytes <= MAX_BYTES) return { ok: true, output };
  const problem = `The answer has ${bytes} bytes as JSON; at most ${MAX_BYTES} are accepted. Send a shorter one.`;
  return { ok: false, problem };
}

function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Creates the result for a rejected answer, with its value unless that is too large to record. */
export function rejectOutput(problem: string, value: Json): ParsedAnswer {
  return jsonBytes(value) > MAX_BYTES
    ? { ok: false, problem }
    : { ok: false, problem, output: value };
}

/** A name, or a name with `required`: an answer without a required tag is rejected. */
export type TagOption = string | { readonly name: string; readonly required?: boolean };

/** The parts that a tagged answer must or may contain; at least one is required. */
export interface TagOptions {
  /** `<name attribute="…">…</name>`. Default: none. */
  readonly xml?: readonly TagOption[];
  /** Fenced blocks by the exact first word after their opening marks. Default: none. */
  readonly fences?: readonly TagOption[];
  /** `<NAME>` or `<NAME/>`: present or absent. Default: none. */
  readonly signals?: readonly string[];
}

type NameOf<Option> = Option extends string ? Option : Option extends { name: infer N } ? N : never;
type NamesOf<Options> = Options extends readonly (infer Option)[] ? NameOf<Option> & string : never;

/** A `TagSet` with typed names, from which the answer's type is inferred. */
export interface Tags<
  Xml extends string = string,
  Marked extends string = string,
  Signal extends string = string,
>
  extends TagSet, Typed<TagAnswer<Xml, Marked, Signal>> {
  readonly xml: readonly (Tag & { readonly name: Xml })[];
  readonly fences: readonly (Tag & { readonly name: Marked })[];
  readonly signals: readonly Signal[];
}

/** One `<name>…</name>` of an answer. */
export interface XmlElement {
  /** Its trimmed content, tags of other names included. */
  readonly text: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/**
 * The parsed tags of an answer. Every declared name is present, with an empty list if it did not
 * occur.
 */
export interface TagAnswer<
  Xml extends string = string,
  Marked extends string = string,
  Signal extends string = string,
> {
  /** The whole answer as the model wrote it. */
  readonly raw: string;
  readonly xml: Readonly<Record<Xml, readonly XmlElement[]>>;
  readonly fences: Readonly<Record<Marked, readonly string[]>>;
  readonly signals: Readonly<Record<Signal, boolean>>;
  /** Fences without a closing line: their last block extends to the end of the answer. */
  readonly unclosed: readonly Marked[];
}

const XML_NAME = /^[A-Za-z][\w.-]{0,63}$/;
const FENCE_NAME = /^[^\s`~]{1,64}$/;

const tag = z.union(
  [z.string(), z.strictObject({ name: z.string(), required: z.boolean().optional() })],
  'expected a name, or { name, required } with true or false',
);
const tagList = z.array(tag).optional();
const tagOptions = z.strictObject({
  xml: tagList,
  fences: tagList,
  signals: z.array(z.string()).optional(),
} satisfies OptionSchemas<TagOptions>);

/**
 * Declares the tags of an answer. They are optional unless `required`.
 *
 * Throws an `InputError` for an invalid name, or for one that is declared twice.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { tags } from 'perdure/output';
 *
 * export const coder = defineAgent({
 *   name: 'coder',
 *   instructions: 'Write the code in a ts fence. Say <DONE/> when it is complete.',
 *   output: tags({ fences: [{ name: 'ts', required: true }], signals: ['DONE'] }),
 * });
 * ```
 */
export function tags<const Options extends TagOptions>(
  options: Options,
): Tags<NamesOf<Options['xml']>, NamesOf<Options['fences']>, NamesOf<Options['signals']>> {
  checkOptions('tags', { schema: tagOptions, options });
  const set: TagSet = {
    xml: (options.xml ?? []).map((option) => toTag(option, 'xml')),
    fences: (options.fences ?? []).map((option) => toTag(option, 'fences')),
    signals: (options.signals ?? []).map((option) => toTag(option, 'signals').name),
  };
  if (set.xml.length + set.fences.length + set.signals.length === 0) {
    throw new InputError(
      'tags: expected at least one name in `xml`, `fences`, or `signals`, got none',
    );
  }
  refuseDuplicates([...set.xml.map(({ name }) => name), ...set.signals], '`xml` and `signals`');
  refuseDuplicates(
    set.fences.map(({ name }) => name),
    '`fences`',
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names are those of the options
  return Object.freeze(set) as ReturnType<typeof tags<Options>>;
}

function toTag(option: TagOption, field: keyof TagOptions): Tag {
  const { name, required = false } = typeof option === 'string' ? { name: option } : option;
  const possible = field === 'fences' ? FENCE_NAME : XML_NAME;
  if (!possible.test(name) || name === '__proto__') {
    const rule =
      field === 'fences'
        ? '1 to 64 characters without spaces and fence marks'
        : 'a letter, then letters, digits, "_", "-" or ".", 64 in all';
    throw new InputError(`tags: ${field}: expected ${rule}, got ${JSON.stringify(name)}`);
  }
  return Object.freeze({ name, required });
}

function refuseDuplicates(names: readonly string[], where: string): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new InputError(
      `tags: expected different names in ${where}, got "${twice}" twice; rename one`,
    );
  }
}

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
export function parseTags(set: TagSet, text: string): ParsedAnswer {
  const names = new Set([...set.xml.map(({ name }) => name), ...set.signals]);
  const marks = groupByName(scanTags(text, names));
  const elements = set.xml.map(
    (each) => [each, findElements(marks.get(each.name) ?? [], text)] as const,
  );
  const fences = findFences(text);
  const answer: TagAnswer = {
    raw: text,
    xml: Object.fromEntries(elements.map(([{ name }, { found }]) => [name, found])),
    fences: Object.fromEntries(
      set.fences.map(({ name }) => [name, findBlocks(name, fences).map(({ content }) => content)]),
    ),
    signals: Object.fromEntries(
      set.signals.map((name) => [name, (marks.get(name) ?? []).some(isSignal)]),
    ),
    unclosed: set.fences.map(({ name }) => name).filter((name) => isUnclosed(name, fences)),
  };
  const problems = [
    ...elements.flatMap(([element, each]) => xmlProblem(element, each)),
    ...set.fences.flatMap((each) => fenceProblem(each, fences)),
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
