import type { Tag, TagSet } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/output-type.js';

/** A name alone, or with `required`: an answer without it is not accepted. */
export type TagOption = string | { readonly name: string; readonly required?: boolean };

export interface TagOptions {
  /** `<name attribute="…">…</name>`. */
  readonly xml?: readonly TagOption[];
  /** Fenced blocks by the first word behind their opening marks, exactly. */
  readonly fences?: readonly TagOption[];
  /** `<NAME>` or `<NAME/>`: there or not. */
  readonly signals?: readonly string[];
}

type NameOf<Option> = Option extends string ? Option : Option extends { name: infer N } ? N : never;
type NamesOf<Options> = Options extends readonly (infer Option)[] ? NameOf<Option> & string : never;

/** A `TagSet` that knows its names, so that the answer's type follows from it. */
export interface Tags<
  Xml extends string = string,
  Fence extends string = string,
  Signal extends string = string,
>
  extends TagSet, Typed<TagAnswer<Xml, Fence, Signal>> {
  readonly xml: readonly (Tag & { readonly name: Xml })[];
  readonly fences: readonly (Tag & { readonly name: Fence })[];
  readonly signals: readonly Signal[];
}

/** One `<name>…</name>` of an answer. */
export interface XmlElement {
  /** What stands in it, tags of other names included, without the white space around. */
  readonly text: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** What an answer gives under tags. Each declared name is there, with an empty list where it did not occur. */
export interface TagAnswer<
  Xml extends string = string,
  Fence extends string = string,
  Signal extends string = string,
> {
  /** The whole answer as the model wrote it. */
  readonly raw: string;
  readonly xml: Readonly<Record<Xml, readonly XmlElement[]>>;
  readonly fences: Readonly<Record<Fence, readonly string[]>>;
  readonly signals: Readonly<Record<Signal, boolean>>;
  /** Fences whose closing line was missing: their last block reaches to the end of the answer. */
  readonly unclosed: readonly Fence[];
}

const XML_NAME = /^[A-Za-z][\w.-]{0,63}$/;
const FENCE_NAME = /^[^\s`~]{1,64}$/;

/**
 * Declares the tags that an answer is made of. They are optional unless `required`.
 *
 * Throws when a name is not possible or is given twice.
 */
export function tags<const Options extends TagOptions>(
  options: Options,
): Tags<NamesOf<Options['xml']>, NamesOf<Options['fences']>, NamesOf<Options['signals']>> {
  refuseUnknownFields(options);
  const set: TagSet = {
    xml: (options.xml ?? []).map((option) => toTag(option, 'xml')),
    fences: (options.fences ?? []).map((option) => toTag(option, 'fences')),
    signals: (options.signals ?? []).map((option) => toTag(option, 'signals').name),
  };
  if (set.xml.length + set.fences.length + set.signals.length === 0) {
    throw new Error('tags: declare at least one name in `xml`, `fences` or `signals`');
  }
  refuseTwice([...set.xml.map(({ name }) => name), ...set.signals], '`xml` and `signals`');
  refuseTwice(
    set.fences.map(({ name }) => name),
    '`fences`',
  );
  // The names are those of the options, which the type of a list does not tell.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.freeze(set) as ReturnType<typeof tags<Options>>;
}

function toTag(option: unknown, field: keyof TagOptions): Tag {
  const { name, required = false }: { name?: unknown; required?: unknown } =
    typeof option === 'object' && option !== null ? option : { name: option };
  const possible = field === 'fences' ? FENCE_NAME : XML_NAME;
  if (typeof name !== 'string' || !possible.test(name) || name === '__proto__') {
    const rule =
      field === 'fences'
        ? '1 to 64 characters without spaces and fence marks'
        : 'a letter, then letters, digits, "_", "-" or ".", 64 in all';
    throw new Error(`tags: ${field} has the name ${JSON.stringify(name)}; give ${rule}`);
  }
  if (typeof required !== 'boolean') {
    throw new Error(`tags: \`required\` of ${field} "${name}" must be true or false`);
  }
  return Object.freeze({ name, required });
}

function refuseUnknownFields(options: object): void {
  const known = ['xml', 'fences', 'signals'];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw new Error(`tags: there is no option \`${unknown}\`; possible are ${known.join(', ')}`);
}

function refuseTwice(names: readonly string[], where: string): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`tags: "${twice}" is given twice in ${where}`);
}
