import { z } from 'zod';
import type { Agent } from '../agents/agent.js';
import type { AnswerContract } from '../agents/agent-parts.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { InputError } from '../core/errors.js';
import { canonicalJson, isObject } from '../core/text/json.js';
import type { RecordedReply } from '../core/transcript/outcome.js';
import type { RequestedCall } from '../core/transcript/messages.js';
import { restorePinnedSchema, toZodType } from '../output/schemas.js';
import { toPlain } from '../tools/result/plain.js';
import { type Tool, createToolRegistry } from '../tools/tool.js';
import { comparedCall } from './divergence-text.js';
import { type Recording, factsOf } from './recording.js';

/**
 * Returns the recorded agent, from the definition that the run has pinned, with those that it called.
 * Throws an `InputError` if a part of it is code, which no recording has.
 */
export function recordedAgent(recording: Recording): Agent {
  const asked = recordedVerdicts(recording);
  const made = new Map<string, Agent>();
  const definitionOf = (name: string): AgentDefinition | undefined =>
    recording.runs.find((run) => run.agent === name)?.definitions.at(-1);
  const isCallable = ({ calls }: ToolDefinition): boolean =>
    calls === undefined || definitionOf(calls.agent) !== undefined;
  const create = (definition: AgentDefinition): Agent => {
    const known = made.get(definition.name);
    if (known !== undefined) return known;
    assertData(definition);
    const { retrieve, remember, compaction, callSettings, texts } = definition;
    const own = definition.tools.filter(({ name }) => name !== READ_RESULT);
    const agents: Agent[] = [];
    const agent: Agent = {
      name: definition.name,
      instructions: definition.instructions,
      template: null,
      answer: contractOf(definition),
      attempts: definition.attempts ?? null,
      onInvalid: definition.onInvalid ?? 'fail',
      decide: definition.decide === 'schema' ? 'schema' : 'tools',
      onPlainText: definition.onPlainText ?? 'respond',
      toolExposure: definition.toolExposure ?? 'all',
      // The rerun replaces both.
      retrieve: retrieve ? { ...retrieve, find: () => [] } : null,
      remember: remember ? { ...remember, save: () => undefined } : null,
      model: definition.model,
      fallbacks: definition.fallbacks ?? [],
      tools: createToolRegistry(
        own.map((tool) => toolOf(isCallable(tool) ? tool : asPlain(tool), asked)),
      ),
      toolChoice: definition.toolChoice,
      toolCalls: definition.toolCalls,
      forkFrom: definition.forkFrom ?? [],
      limits: definition.limits,
      onLimit: definition.onLimit,
      settings: definition.settings,
      ...(callSettings && { callSettings }),
      ...(compaction !== undefined && { compaction }),
      description: '',
      mcp: [],
      agents,
      rules: definition.rules ?? [],
      ...(texts && { texts }),
    };
    made.set(definition.name, agent);
    for (const called of own.flatMap(({ calls }) => definitionOf(calls?.agent ?? '') ?? [])) {
      agents.push(create(called));
    }
    return agent;
  };
  const root = definitionOf(recording.runs[0]?.agent ?? '');
  if (root === undefined) {
    throw new InputError(
      'agent: expected the agent of the recording, got none; the recorded run has pinned no definition',
    );
  }
  return create(root);
}

/** Throws an `InputError` if the agent needs code. */
function assertData({ name, decide, output, graph, prompts }: AgentDefinition): void {
  const code =
    (graph && 'it is a graph, whose functions a recording does not have') ??
    (decide === 'function' && 'its `decide` is a function, which a recording does not have') ??
    (output?.type === 'function' &&
      'its `output` is a function, which a recording does not have') ??
    (prompts && 'its named prompts are read by code, which a recording does not have');
  if (!code) return;
  throw new InputError(
    `agent: expected the agent "${name}", got none: ${code}; pass it as \`agent\``,
  );
}

function contractOf({ output }: AgentDefinition): AnswerContract | null {
  switch (output?.type) {
    case 'json':
      return {
        definition: output,
        parser: { type: 'zod', schema: restorePinnedSchema(output.schema) },
      };
    case 'tags':
      return { definition: output, parser: output };
    case 'classes':
      return { definition: output, parser: null };
    case 'function':
    case undefined:
      return null;
  }
}

/** Whether a recorded call needed a decision, by its name and its arguments. */
type Verdicts = ReadonlyMap<string, boolean>;

function recordedVerdicts(recording: Recording): Verdicts {
  const calls = factsOf(recording, 'reply').flatMap(({ fact: { reply } }) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the history's own form of a reply
    return isObject(reply) ? ((reply as unknown as RecordedReply).calls ?? []) : [];
  });
  return new Map(calls.map((call) => [verdictKey(call), call.verdict !== undefined]));
}

function verdictKey({ name, arguments: args, parsed }: RequestedCall): string {
  return canonicalJson({ ...comparedCall({ name, arguments: parsed?.arguments ?? args }) });
}

/**
 * Returns the tools of MCP servers that a recorded run of an agent has pinned, as far as the agent still
 * gets them. Returns none for an agent that has no recorded run.
 */
export function pinnedMcpTools(recording: Recording, { name, mcp }: Agent): readonly Tool[] {
  const asked = recordedVerdicts(recording);
  const definition = recording.runs.find((run) => run.agent === name)?.definitions.at(-1);
  const isKept = ({ mcp: from }: ToolDefinition): boolean =>
    mcp.some(
      ({ name: server, allowTools, denyTools }) =>
        server === from?.server &&
        (allowTools?.includes(from.tool) ?? true) &&
        !denyTools.includes(from.tool),
    );
  return (definition?.tools ?? []).filter(isKept).map((tool) => toolOf(tool, asked));
}

/** The tool that workers add by themselves. */
const READ_RESULT = 'read_result';

/** An agent that the run has not called is not in the recording: a call of it ends the rerun. */
function asPlain({ kind: _kind, calls: _calls, ...tool }: ToolDefinition): ToolDefinition {
  return tool;
}

function toolOf(definition: ToolDefinition, asked: Verdicts): Tool {
  const { name, approval, verify, mcp: _mcp, value: _value, ...rest } = definition;
  const input = toZodType(definition.parameters);
  const missing = (): never => {
    throw new InputError(`tool "${name}": the recording has its results, but not its code`);
  };
  return {
    ...rest,
    name,
    input: input instanceof z.ZodObject ? input : z.looseObject({}),
    ...(approval && {
      approval: (given: unknown) =>
        asked.get(canonicalJson({ tool: name, arguments: toPlain(given) })) ?? true,
    }),
    execute: missing,
    executeParsed: missing,
    ...(verify && { verify: missing }),
  };
}
