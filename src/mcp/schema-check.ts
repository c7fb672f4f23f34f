import { LRUCache } from 'lru-cache';
import { canonicalJson, type JsonObject } from '../core/json.js';
import { sha256Hex } from '../core/digest.js';

type Check = (value: JsonObject) => string | null;

const KEPT = 200;
const compiled = new LRUCache<string, Promise<Check>>({ max: KEPT });

/** What is wrong with a value under a JSON schema of any dialect, for the model; null where nothing is. */
export async function schemaCheck(schema: JsonObject, value: JsonObject): Promise<string | null> {
  const key = sha256Hex(canonicalJson(schema));
  const known = compiled.get(key) ?? compile(schema);
  compiled.set(key, known);
  return (await known)(value);
}

async function compile(schema: JsonObject): Promise<Check> {
  const { AjvJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/ajv');
  try {
    // An id would make two versions of one schema clash.
    const { $id: _, id: __, ...rest } = schema;
    const check = new AjvJsonSchemaValidator().getValidator(rest);
    return (value) => {
      const { valid, errorMessage } = check(value);
      return valid ? null : errorMessage.replaceAll(/^data\b|(?<=, )data\b/g, 'the arguments');
    };
  } catch {
    return () => null;
  }
}
