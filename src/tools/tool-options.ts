import { isObject } from '../core/json.js';

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const EFFECTS = ['read', 'keyed', 'once'];
const KNOWN = [
  'name',
  'description',
  'input',
  'effect',
  'output',
  'approval',
  'timeout',
  'heartbeat',
  'retry',
  'ends',
  'repeat',
  'catalog',
  'describe',
  'verify',
  'undo',
  'execute',
];

type Options = Readonly<Record<string, unknown>>;

/** Throws at the first fault of a tool definition. Types say the same, but a config may be JavaScript. */
export function assertToolOptions(value: unknown): void {
  if (!isObject(value)) throw new Error(`defineTool takes one object, not ${show(value)}`);
  const options: Options = value;
  const name = options['name'];
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new Error(
      `tool name ${show(name)} is not possible: use 1 to 64 letters, digits, "_" and "-"`,
    );
  }
  const problem =
    unknownOption(options) ??
    wrongText(options) ??
    wrongEffect(options) ??
    wrongSchema(options) ??
    wrongTimes(options) ??
    wrongRetry(options) ??
    wrongChoice(options) ??
    wrongCatalog(options) ??
    wrongFunction(options);
  if (problem !== undefined) throw new Error(`tool "${name}": ${problem}`);
}

function unknownOption(options: Options): string | undefined {
  const unknown = Object.keys(options).find((key) => !KNOWN.includes(key));
  return unknown && `there is no option \`${unknown}\`; possible are ${KNOWN.join(', ')}`;
}

function wrongText({ description }: Options): string | undefined {
  if (typeof description === 'string' && description.trim() !== '') return undefined;
  return `\`description\` must be a text that tells the model what the tool does, not ${show(description)}`;
}

function wrongEffect({ effect, verify }: Options): string | undefined {
  if (typeof effect !== 'string' || !EFFECTS.includes(effect)) {
    return (
      `\`effect\` is ${show(effect)}; it has no default: say "read" (changes nothing), "keyed" ` +
      '(the destination honors our idempotency key) or "once" (must never happen twice)'
    );
  }
  if (verify === undefined || effect === 'once') return undefined;
  return `\`verify\` is for effect "once", not "${effect}": only there can an outcome stay unknown`;
}

function wrongSchema({ input, output }: Options): string | undefined {
  const kind = zodKind(input);
  if (kind !== 'object') {
    return `\`input\` must be a z.object({…}) of zod 4, not ${kind ? `z.${kind}` : show(input)}`;
  }
  if (typeof read(input, 'strict') !== 'function') {
    return '`input` must be made with `import { z } from "zod"`, not with zod/mini';
  }
  const shape = read(input, 'shape');
  if (isObject(shape) && Object.hasOwn(shape, '__proto__')) {
    return '`input` has a field `__proto__`, which is refused in arguments; name it otherwise';
  }
  if (output === undefined || zodKind(output)) return undefined;
  return `\`output\` must be a zod schema, not ${show(output)}`;
}

/** A longer timer of Node fires at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

function wrongTimes(options: Options): string | undefined {
  const wrong = ['timeout', 'heartbeat'].find((key) => {
    const value = options[key];
    return value !== undefined && !(Number(value) > 0 && Number(value) <= LONGEST_TIMER_MS);
  });
  return (
    wrong &&
    `\`${wrong}\` must be a positive number of milliseconds, at most ${LONGEST_TIMER_MS} (24 days), not ${show(options[wrong])}`
  );
}

function wrongRetry({ retry, effect }: Options): string | undefined {
  if (retry === undefined) return undefined;
  if (!isObject(retry)) return `\`retry\` must be { attempts: number }, not ${show(retry)}`;
  const attempts = retry['attempts'];
  if (attempts === undefined) return undefined;
  if (!Number.isInteger(attempts) || Number(attempts) < 1) {
    return `\`retry.attempts\` must be a whole number from 1, not ${show(attempts)}`;
  }
  if (effect !== 'once' || attempts === 1) return undefined;
  return `\`retry.attempts\` is ${show(attempts)}, but a tool with effect "once" has one attempt; leave it out, or make the tool "keyed"`;
}

function wrongChoice({ ends, repeat, approval }: Options): string | undefined {
  if (ends !== undefined && typeof ends !== 'boolean') {
    return `\`ends\` must be true or false, not ${show(ends)}`;
  }
  if (repeat !== undefined && repeat !== 'allow') {
    return `\`repeat\` can only be "allow", not ${show(repeat)}`;
  }
  const known = approval === undefined || approval === 'never' || approval === 'always';
  if (known || typeof approval === 'function') return undefined;
  return `\`approval\` must be "never", "always" or a function, not ${show(approval)}`;
}

/** Characters. */
const MOST_SUMMARY = 200;
const MOST_VALUE = 64;
const MOST_ACTIONS = 20;

function wrongCatalog({ catalog }: Options): string | undefined {
  if (catalog === undefined) return undefined;
  const { summary, category, actions } = isObject(catalog) ? catalog : {};
  const texts = Array.isArray(actions) && actions.every((action) => typeof action === 'string');
  if (typeof summary !== 'string' || typeof category !== 'string' || !texts) {
    return `\`catalog\` must be { summary, category, actions: [text, …] }, not ${show(catalog)}`;
  }
  // A list of tools is to cost little; so is each line of it.
  if (summary.length > MOST_SUMMARY) {
    return `\`catalog.summary\` has ${summary.length} characters; give at most ${MOST_SUMMARY}, the rest belongs in \`description\``;
  }
  const long = [category, ...actions].find((value) => value === '' || value.length > MOST_VALUE);
  if (long === undefined && actions.length <= MOST_ACTIONS) return undefined;
  return `\`catalog\` must name a category and at most ${MOST_ACTIONS} actions, of 1 to ${MOST_VALUE} characters each`;
}

function wrongFunction(options: Options): string | undefined {
  const wrong = ['execute', 'describe', 'verify', 'undo'].find((key) => {
    const value = options[key];
    return typeof value !== 'function' && (value !== undefined || key === 'execute');
  });
  return wrong && `\`${wrong}\` must be a function, not ${show(options[wrong])}`;
}

function zodKind(value: unknown): string | undefined {
  const kind = read(read(read(value, '_zod'), 'def'), 'type');
  return typeof kind === 'string' ? kind : undefined;
}

function read(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 100));
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
