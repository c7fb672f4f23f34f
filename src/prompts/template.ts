import { z } from 'zod';
import { parsePlaceholders } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import { type Json, canonicalJson, sha256Hex } from '../core/text/json.js';
import { writtenSchema } from '../tools/arguments/check-arguments.js';
import { normalizeError, toPlain } from '../tools/result/plain.js';
import { checkOptions, describeIssues } from '../validation/check-options.js';
import { nearestFirst } from '../validation/near-names.js';

/** The possible values of an argument that is declared only by its name. */
export type TemplateValue = string | number | boolean;
type NamedArguments<Name extends string> = z.ZodObject<
  Record<Name, z.ZodType<TemplateValue, TemplateValue>>
>;

/** A prompt with declared arguments. */
export interface Template<Args extends z.ZodObject = z.ZodObject> {
  readonly text: string;
  readonly args: Args;
  readonly version?: string;
  /** SHA-256 (hex) of the text, the schema of the arguments, and the version. */
  readonly hash: string;
}

/** The type of the arguments that a run passes; unknown if they are not known to the compiler. */
export type TemplateArgs<Args extends z.ZodObject> = string extends keyof z.input<Args>
  ? unknown
  : z.input<Args>;

const templateOptions = z.strictObject({
  args: z.unknown().optional(),
  version: z.string().optional(),
});

/**
 * Creates a template with placeholders such as `{{name}}`; `{{{{` stands for two braces. `args` are
 * names, for text, numbers, and booleans, or a zod object; an absent optional argument becomes
 * empty text.
 *
 * Throws an `InputError` if the text has an undeclared placeholder, if it does not use a declared
 * argument, or if an option is invalid.
 *
 * @example
 * ```ts
 * import { defineAgent, template } from 'perdure';
 *
 * export const extract = defineAgent({
 *   name: 'extract',
 *   instructions: template('Extract the {{kind}} from the text.', { args: ['kind'] }),
 * });
 * ```
 */
export function template<const Name extends string = never>(
  text: string,
  options?: { readonly args?: readonly Name[]; readonly version?: string },
): Template<NamedArguments<Name>>;
export function template<Args extends z.ZodObject>(
  text: string,
  options: { readonly args: Args; readonly version?: string },
): Template<Args>;
export function template(
  text: string,
  options: { readonly args?: readonly string[] | z.ZodObject; readonly version?: string } = {},
): Template {
  if (typeof text !== 'string')
    throw new InputError(`template: expected a string, got ${typeof text}`);
  checkOptions('template', { schema: templateOptions, options });
  const { version } = options;
  const args = toSchema(options.args ?? []);
  const known = Object.keys(args.shape);
  const used = listNames(text);
  const unknown = used.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new InputError(
      `template: ${describeUnknown('argument', unknown, known)}; declare it in \`args\``,
    );
  }
  const unused = known.find((name) => !used.includes(name));
  if (unused !== undefined) {
    throw new InputError(
      `template: args: expected arguments that the text uses, got ${JSON.stringify(unused)}; write {{${unused}}} in the text, or remove the argument`,
    );
  }
  const content = {
    text,
    args: describeArguments(args),
    ...(version !== undefined && { version }),
  };
  return Object.freeze({
    text,
    args,
    ...(version !== undefined && { version }),
    hash: sha256Hex(canonicalJson(content)),
  });
}

function toSchema(args: readonly string[] | z.ZodObject): z.ZodObject {
  if (args instanceof z.ZodObject) return args;
  if (!isList(args)) {
    throw new InputError('template: args: expected a list of names, or a z.object({…}) of zod 4');
  }
  const wrong = args.find((name) => typeof name !== 'string' || !/^[A-Za-z_]\w*$/.test(name));
  if (wrong !== undefined || args.includes('__proto__')) {
    const shown = JSON.stringify(wrong ?? '__proto__');
    throw new InputError(`template: args: expected letters, digits, and "_", got ${shown}`);
  }
  // Sorted, so that the order of declaration does not change the hash.
  const value = z.union([z.string(), z.number(), z.boolean()]);
  const sorted = [...new Set(args)].toSorted((a, b) => (a < b ? -1 : 1));
  return z.object(Object.fromEntries(sorted.map((name) => [name, value])));
}

/** Types require it, but a config may be JavaScript. */
function isList(value: unknown): boolean {
  return Array.isArray(value);
}

function listNames(text: string): string[] {
  try {
    const parts = parsePlaceholders(text);
    return [...new Set(parts.flatMap((part) => (part.type === 'argument' ? [part.name] : [])))];
  } catch (error) {
    throw new InputError(`template: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function describeArguments(args: z.ZodObject): ReturnType<typeof writtenSchema> {
  try {
    return writtenSchema(args, 'args');
  } catch (error) {
    throw new InputError(`template: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Returns a text such as `unknown argument "nmae"; expected one of name, city`. */
function describeUnknown(
  what: string,
  unknown: readonly string[],
  known: readonly string[],
): string {
  const names = unknown.map((name) => JSON.stringify(name)).join(', ');
  const nearest = nearestFirst(unknown[0] ?? '', known);
  const expected = nearest.length === 0 ? 'none' : `one of ${nearest.join(', ')}`;
  return `unknown ${what} ${names}; expected ${expected}`;
}

/**
 * Fills in a template. Each value is inserted once, whatever braces it contains: text verbatim,
 * other values as JSON, an absent optional argument as empty text.
 *
 * Throws an `Error` that names every argument that is missing, undeclared, or invalid.
 */
export function renderTemplate<Args extends z.ZodObject>(
  form: Template<Args>,
  values: z.input<Args>,
): string {
  const given: Readonly<Record<string, unknown>> = values;
  const checked = checkValues(form, given);
  return parsePlaceholders(form.text)
    .map((part) => (part.type === 'text' ? part.text : toText(getOwn(checked, part.name))))
    .join('');
}

function checkValues(form: Template, values: Readonly<Record<string, unknown>>): object {
  const known = Object.keys(form.args.shape);
  const unknown = Object.keys(values).filter((name) => !known.includes(name));
  const faults = unknown.length === 0 ? [] : [`- ${describeUnknown('argument', unknown, known)}`];
  const result = parse(form, values);
  if (result.success && faults.length === 0) return result.data;
  const issues = result.error?.issues ?? [];
  const isMissing = ({ path: [name, ...deeper] }: z.core.$ZodIssue): boolean =>
    name !== undefined && deeper.length === 0 && getOwn(values, String(name)) === undefined;
  for (const issue of issues)
    if (isMissing(issue)) faults.push(`- ${String(issue.path[0])} is missing`);
  const invalid = issues.filter((issue) => !isMissing(issue) && issue.code !== 'unrecognized_keys');
  const lines = describeIssues(invalid, toPlain(values), {
    keys: { known, unrecognized: (keys) => `unknown argument ${keys}` },
  });
  const all = `its arguments are ${known.join(', ') || 'none'}`;
  throw new Error([`The template cannot be rendered; ${all}:`, ...faults, ...lines].join('\n'));
}

function parse(
  { args }: Template,
  values: unknown,
): z.ZodSafeParseResult<Readonly<Record<string, unknown>>> {
  try {
    return args.safeParse(values);
  } catch (error) {
    const { message } = normalizeError(error);
    throw new Error(`The arguments of the template could not be checked: ${message}`, {
      cause: error,
    });
  }
}

function getOwn(values: object, name: string): unknown {
  return Object.hasOwn(values, name) ? (Reflect.get(values, name) as unknown) : undefined;
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  const plain: Json = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}
