import { COMPACTION_INSTRUCTIONS, renderForCompaction } from '../core/compaction-text.js';
import type { AgentDefinition } from '../core/definition.js';
import type { PromptMessage } from '../core/messages.js';
import type { ModelRequest } from '../models/model.js';
import { parametersOf } from '../models/parameters.js';
import { answerSchema } from './answer.js';
import { classRequest } from './classification.js';
import type { CallModelInput } from './contract.js';
import { decisionRequest } from './schema-decision.js';

/** What a model is asked: a pure function of the definition, the prompt and the activity's input. */
export function modelRequest(
  definition: AgentDefinition,
  messages: readonly PromptMessage[],
  input: CallModelInput,
): ModelRequest {
  const request = { ...baseRequest(definition, messages, input), ...known(input) };
  if (definition.output?.type === 'classes' && input.compact === undefined) {
    return classRequest(request, definition.output);
  }
  const decides = definition.decide === 'schema' && input.compact === undefined;
  return decides ? decisionRequest(request, definition) : request;
}

function baseRequest(
  definition: AgentDefinition,
  messages: readonly PromptMessage[],
  input: CallModelInput,
): ModelRequest {
  const { model, settings } = definition;
  if (input.compact !== undefined) {
    return {
      model,
      instructions: COMPACTION_INSTRUCTIONS,
      messages: [{ role: 'user', text: renderForCompaction(messages.slice(0, input.compact)) }],
      tools: [],
      toolChoice: 'none',
      settings,
    };
  }
  const responseFormat = answerSchema(definition);
  return {
    model,
    instructions: definition.instructions,
    messages,
    tools: definition.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    })),
    toolChoice: input.closing ? 'none' : definition.toolChoice,
    settings: capped(definition, input),
    ...(responseFormat && { responseFormat }),
  };
}

function capped({ settings }: AgentDefinition, { maxOutputTokens }: CallModelInput) {
  if (maxOutputTokens === undefined) return settings;
  const most = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity);
  return { ...settings, maxOutputTokens: most };
}

/** What the server has refused before in this run is not tried again. */
function known({ without = [] }: CallModelInput): Pick<ModelRequest, 'without'> {
  const parameters = parametersOf(without);
  return parameters.length === 0 ? {} : { without: parameters };
}
