import { InvalidArgumentError } from 'commander';
import type { Json, JsonObject } from '../core/json.js';

/** An option that may be given several times: all its values, in order. */
export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** `--arg NAME=TEXT`, or `NAME:=JSON` for what is no text; each name once. */
export function templateArguments(given: string, before: JsonObject = {}): JsonObject {
  const [, name = '', sign, text = ''] = /^([^=:\s]+)(:?=)(.*)$/s.exec(given) ?? [];
  if (sign === undefined) throw new InvalidArgumentError('Give NAME=TEXT or NAME:=JSON.');
  if (Object.hasOwn(before, name)) {
    throw new InvalidArgumentError(`The argument ${name} has a value already.`);
  }
  return { ...before, [name]: sign === ':=' ? json(text) : text };
}

function json(text: string): Json {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
    return JSON.parse(text) as Json;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidArgumentError(`It is no JSON: ${why}.`);
  }
}
