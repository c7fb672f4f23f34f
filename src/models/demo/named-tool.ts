import { isObject } from '../../core/json.js';
import type { Json } from '../../core/json.js';
import { plainly } from './results.js';
import type { DemoPlan } from './replay.js';
import { fileNames, quotedTexts } from './words.js';
import type { ModelTool } from '../model.js';

/** The tool that a person names: by an unmistakable name, or as `the tool NAME`, `call NAME`. */
export function namedTool(question: string, tools: readonly ModelTool[]): ModelTool | undefined {
  return tools.find(({ name }) => {
    const escaped = name.replace(/[-]/g, '\\-');
    const word = `(?<![\\w./-])${escaped}(?![\\w/-]|\\.\\w)`;
    const isPlainWord = /^[a-z]+$/i.test(name);
    const context = isPlainWord ? `(?:(?:call|use|run|tool) (?:the (?:tool )?)?|[\`"'])` : '';
    return new RegExp(context + word, 'i').test(question);
  });
}

/** Calls the named tool once, with arguments from what is quoted or counted in the question. */
export function* namedToolPlan(tool: ModelTool, question: string): DemoPlan {
  const { input, missing } = fillArguments(tool, question);
  if (missing.length > 0) {
    const names = missing.map((name) => `\`${name}\``).join(', ');
    return `To call ${tool.name} I need ${names}: put the text in quotes, in that order.`;
  }
  const [result] = yield [{ tool: tool.name, input }];
  return plainly(tool.name, result);
}

function fillArguments(
  tool: ModelTool,
  question: string,
): { readonly input: Record<string, Json>; readonly missing: readonly string[] } {
  const { properties, required } = tool.parameters;
  const schemas: Record<string, unknown> = isObject(properties) ? properties : {};
  const needed = Array.isArray(required) ? required.map(String) : [];
  const texts = quotedTexts(question);
  const unquoted = texts.reduce((rest, text) => rest.replace(text, ''), question);
  const numbers = [...unquoted.matchAll(/(?<![\w.])-?\d+(?:\.\d+)?(?![\w])/g)].map(
    ([text]) => text,
  );
  const files = fileNames(unquoted);
  const input: Record<string, Json> = {};
  const wanted = needed.length > 0 ? needed : firstText(schemas);
  for (const name of wanted) {
    const value = valueFor(schemas[name], { name, texts, numbers, files });
    if (value !== undefined) input[name] = value;
  }
  return { input, missing: needed.filter((name) => !(name in input)) };
}

/** Each source is used up from its front. */
function valueFor(
  schema: unknown,
  from: {
    readonly name: string;
    readonly texts: string[];
    readonly numbers: string[];
    readonly files: string[];
  },
): Json | undefined {
  const type = isObject(schema) ? schema['type'] : undefined;
  if (type === 'number' || type === 'integer') {
    const number = from.numbers.shift();
    return number === undefined ? undefined : Number(number);
  }
  if (type !== 'string') return undefined;
  const isPath = /path|file/i.test(from.name);
  return from.texts.shift() ?? (isPath ? from.files.shift() : undefined) ?? from.numbers.shift();
}

function firstText(schemas: Record<string, unknown>): string[] {
  const first = Object.entries(schemas).find(
    ([, schema]) => isObject(schema) && schema['type'] === 'string',
  );
  return first ? [first[0]] : [];
}
