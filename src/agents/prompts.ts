import type { z } from 'zod';
import { InputError } from '../core/errors.js';
import type { ModelSettings, PromptDefinition } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/agent-types.js';
import { uncheckedKeyword } from '../core/input/named-prompt.js';
import type { Json } from '../core/text/json.js';
import type { Template } from '../prompts/template.js';
import { writtenSchema } from '../tools/arguments/check-arguments.js';
import { namesHint } from '../validation/near-names.js';
import { mcpToolNames } from '../validation/rule-names.js';
import { answerContract, type AgentOutput, type AnswerContract } from './agent-parts.js';

/** A named prompt of an agent, which a message can name: its text, and what its turn uses. */
export interface PromptOptions {
  /**
   * The text of the message; a template takes arguments, of types that JSON schema can describe.
   */
  readonly text: string | Template;
  /**
   * The required form of the turn's answer; null accepts any text; default: the agent's `output`.
   */
  readonly output?: AgentOutput<unknown> | null;
  /** Names of the agent's tools that the turn may call; `[]` means none; default: all. */
  readonly tools?: readonly string[];
  /** Settings of the model for the turn; each replaces the agent's. Default: the agent's. */
  readonly settings?: ModelSettings;
  /** The maximum number of answers in the turn until one fits; default: the agent's. */
  readonly attempts?: number;
}

/** The named prompts of an agent. */
export type PromptTable = Readonly<Record<string, PromptOptions>>;

/** The types of an agent's prompts, as its client sees them: arguments and output of each. */
export type PromptTypes<Prompts, Output = Json> = {
  readonly [Name in keyof Prompts]: {
    readonly args: ArgsOf<Prompts[Name]>;
    readonly output: OutputOf<Prompts[Name], Output>;
  };
};

type ArgsOf<Prompt> = Prompt extends { readonly text: Template<infer Args> }
  ? z.input<Args>
  : Readonly<Record<string, never>>;

type OutputOf<Prompt, Default> = Prompt extends { readonly output: infer Output }
  ? Output extends z.ZodType<infer Value>
    ? Value
    : Output extends null
      ? Json
      : Output extends (...given: never[]) => infer Value
        ? Awaited<Value>
        : Output extends Typed<infer Value>
          ? Value
          : Json
  : Default;

/** A named prompt of an agent: as data to pin, and as the code that reads its answers. */
export interface NamedPrompt {
  readonly definition: PromptDefinition;
  /** Null accepts any text; if absent, the agent's own contract applies. */
  readonly answer?: AnswerContract | null;
  /** The arguments, for the tool of an agent that calls this one; absent if there are none. */
  readonly args?: z.ZodObject;
}

/** What the prompts of an agent can refer to. */
interface Owner {
  readonly name: string;
  /** The names of its tools. */
  readonly tools: readonly string[];
  /** The names of its MCP servers, which list further tools when a run starts. */
  readonly servers: readonly string[];
  readonly hasOutput: boolean;
}

/**
 * Returns the prompts of an agent. Throws an `InputError` that names the agent, the prompt, and the
 * option.
 */
export function namedPrompts(table: PromptTable, owner: Owner): ReadonlyMap<string, NamedPrompt> {
  const sorted = Object.entries(table).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return new Map(sorted.map(([name, options]) => [name, namedPrompt(name, options, owner)]));
}

function namedPrompt(name: string, options: PromptOptions, owner: Owner): NamedPrompt {
  const where = `agent "${owner.name}": prompts.${name}`;
  const { text, output, tools, settings, attempts } = options;
  const args = typeof text === 'string' ? undefined : text.args;
  const schema = args && argumentSchema(args, where);
  const answer = output ? answerContract(owner.name, output) : output;
  const contract = answer === undefined ? owner.hasOutput : answer !== null;
  if (attempts !== undefined && !contract) {
    throw new InputError(
      `${where}.attempts: expected an output that answers can fit; give \`output\` too`,
    );
  }
  refuseUnknown(tools ?? [], owner, `${where}.tools`);
  return {
    definition: {
      text: typeof text === 'string' ? text : text.text,
      ...(schema && { args: schema }),
      ...(answer !== undefined && { output: answer?.definition ?? null }),
      ...(attempts !== undefined && { attempts }),
      ...(tools && { tools: [...new Set(tools)].toSorted() }),
      ...(settings && { settings }),
    },
    ...(answer !== undefined && { answer }),
    ...(args && { args }),
  };
}

/**
 * The workflow itself validates the arguments, so their schema may contain only what it can
 * validate.
 */
function argumentSchema(args: z.ZodObject, where: string): PromptDefinition['args'] {
  const schema = writtenSchema(args, 'args');
  const keyword = uncheckedKeyword(schema);
  if (keyword === null) return schema;
  throw new InputError(
    `${where}.text: expected arguments that a run can check, got one with "${keyword}"; ` +
      'use texts, numbers, booleans, enums, lists, and objects, with bounds at most',
  );
}

function refuseUnknown(tools: readonly string[], owner: Owner, where: string): void {
  const { servers } = owner;
  const unknown = tools.find(
    (tool) =>
      !owner.tools.includes(tool) && !servers.some((server) => tool.startsWith(`${server}__`)),
  );
  if (unknown === undefined) return;
  const hint = namesHint(unknown, owner.tools);
  const named = servers.length > 0 ? `${mcpToolNames(unknown, servers)}; ` : '';
  throw new InputError(
    `${where}: expected names of the agent's tools, got "${unknown}" (${hint}); ${named}correct the name, or add the tool to the agent`,
  );
}
