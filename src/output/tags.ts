import { z } from 'zod';
import { InputError } from '../core/errors.js';
import type { Tag, TagSet } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/output-type.js';
import { checkOptions, type OptionSchemas } from '../validation/check-options.js';

/** A name, or a name with `required`: an answer without a required tag is rejected. */
export type TagOption = string | { readonly name: string; readonly required?: boolean };

/** The parts that a tagged answer must or may contain; at least one is required. */
export interface TagOptions {
  /** `<name attribute="…">…</name>`. */
  readonly xml?: readonly TagOption[];
  /** Fenced blocks by the exact first word after their opening marks. */
  readonly fences?: readonly TagOption[];
  /** `<NAME>` or `<NAME/>`: present or absent. */
  readonly signals?: readonly string[];
}

type NameOf<Option> = Option extends string ? Option : Option extends { name: infer N } ? N : never;
type NamesOf<Options> = Options extends readonly (infer Option)[] ? NameOf<Option> & string : never;

/** A `TagSet` with typed names, from which the answer's type is inferred. */
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
  Fence extends string = string,
  Signal extends string = string,
> {
  /** The whole answer as the model wrote it. */
  readonly raw: string;
  readonly xml: Readonly<Record<Xml, readonly XmlElement[]>>;
  readonly fences: Readonly<Record<Fence, readonly string[]>>;
  readonly signals: Readonly<Record<Signal, boolean>>;
  /** Fences without a closing line: their last block extends to the end of the answer. */
  readonly unclosed: readonly Fence[];
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
