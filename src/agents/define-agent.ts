import type { Limits, OnLimit, Settings, ToolCalls, ToolChoice } from '../core/definition.js';
import { checkLimits } from '../core/input.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';

/** What an author writes. */
export interface AgentOptions {
  /** Letters, digits, `_`, `-` and `.`, at most 64 characters; unique on a worker. */
  readonly name: string;
  /** The system message. */
  readonly instructions: string;
  /** An entry of `models` in the config, else a name for the OpenAI adapter; absent: PERDURE_MODEL. */
  readonly model?: string;
  readonly tools?: readonly Tool[];
  /** Default `auto`. */
  readonly toolChoice?: ToolChoice;
  /** What to do with several calls in one message; default `parallel`, at most 5 at once. */
  readonly toolCalls?: ToolCalls;
  /** Per turn, and in `run` for the whole run; default 50 steps and 200 calls per turn. */
  readonly limits?: Limits;
  /** How a turn ends at a limit; default `answer`. */
  readonly onLimit?: OnLimit;
  readonly settings?: Settings;
}

/** An agent as `defineAgent` made it: checked, defaults filled in. */
export interface Agent {
  readonly name: string;
  readonly instructions: string;
  readonly model: string | null;
  readonly tools: ToolRegistry;
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly limits: Limits;
  readonly onLimit: OnLimit;
  readonly settings: Settings;
}

const CHOICES = {
  toolChoice: ['auto', 'required', 'none'],
  toolCalls: ['parallel', 'sequential', 'first'],
  onLimit: ['answer', 'compose', 'fail'],
} as const;

const FIELDS = 'name instructions model tools toolChoice toolCalls limits onLimit settings'.split(
  ' ',
);

/** Makes an agent. Throws when the definition cannot work, with the value at fault and the cure. */
export function defineAgent(options: AgentOptions): Agent {
  const name = checkName(options.name);
  refuseUnknownFields(name, options);
  if (typeof options.instructions !== 'string') {
    throw new Error(
      `agent "${name}": instructions must be a text, not ${typeof options.instructions}`,
    );
  }
  if (options.model !== undefined && (typeof options.model !== 'string' || options.model === '')) {
    throw new Error(`agent "${name}": model must be a name; leave it out to use PERDURE_MODEL`);
  }
  const limits = options.limits ?? {};
  const wrong = checkLimits(limits, 'limits');
  if (wrong !== null) throw new Error(`agent "${name}": ${wrong}`);
  return Object.freeze({
    name,
    instructions: options.instructions,
    model: options.model ?? null,
    tools: registryOf(name, options.tools ?? []),
    toolChoice: choose(name, 'toolChoice', options.toolChoice ?? 'auto'),
    toolCalls: choose(name, 'toolCalls', options.toolCalls ?? 'parallel'),
    limits,
    onLimit: choose(name, 'onLimit', options.onLimit ?? 'answer'),
    settings: options.settings ?? {},
  });
}

function checkName(name: unknown): string {
  if (typeof name === 'string' && /^[\w.-]{1,64}$/.test(name)) return name;
  throw new Error(
    `agent name ${JSON.stringify(name)}: give 1 to 64 letters, digits, "_", "-" or "."`,
  );
}

function refuseUnknownFields(name: string, options: object): void {
  const unknown = Object.keys(options).find((key) => !FIELDS.includes(key));
  if (unknown === undefined) return;
  throw new Error(`agent "${name}": no such option "${unknown}"; there are ${FIELDS.join(', ')}`);
}

function registryOf(name: string, tools: readonly Tool[]): ToolRegistry {
  const asking = tools.find(({ approval }) => approval !== undefined && approval !== 'never');
  if (asking !== undefined) {
    // Better no agent than one that acts without the consent its author asked for.
    throw new Error(
      `agent "${name}": tool "${asking.name}" wants approval, which this version cannot ask for; ` +
        'leave `approval` out, or give "never"',
    );
  }
  try {
    return createToolRegistry(tools);
  } catch (error) {
    throw new Error(`agent "${name}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function choose<F extends keyof typeof CHOICES>(
  name: string,
  field: F,
  value: (typeof CHOICES)[F][number],
): (typeof CHOICES)[F][number] {
  const possible: readonly string[] = CHOICES[field];
  if (possible.includes(value)) return value;
  throw new Error(
    `agent "${name}": ${field} ${JSON.stringify(value)}: give one of ${possible.join(', ')}`,
  );
}
