import { shownTools, withInvocations } from '../../core/catalog/catalog.js';
import { COMPACTION_INSTRUCTIONS, renderForCompaction } from '../../core/text/compaction-text.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import type { ModelRequest } from '../../models/model.js';
import { parametersOf } from '../../models/parameters.js';
import { answerSchema } from './answer.js';
import { classRequest } from './classification.js';
import type { CallModelInput } from '../../core/contract.js';
import { decisionRequest } from './schema-decision.js';

/** Of a model's window, for what is to be summarized. */
const SUMMARY_SHARE = 0.7;
const CHARACTERS_PER_TOKEN = 3;
/** Where nobody knows the window: what was too long already shall not be again. */
const UNKNOWN_ROOM = 200_000;
const LEAST_CHARACTERS = 400;

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
      messages: [{ role: 'user', text: material(messages.slice(0, input.compact), input) }],
      tools: [],
      toolChoice: 'none',
      settings,
    };
  }
  const responseFormat = answerSchema(definition);
  return {
    model,
    instructions: definition.instructions,
    messages: withInvocations(definition, messages),
    tools: shownTools(definition),
    toolChoice: input.closing ? 'none' : definition.toolChoice,
    settings: capped(definition, input),
    ...(responseFormat && { responseFormat }),
  };
}

/** What is to be summarized, its long texts cut as far as is needed for the model to read them all. */
function material(messages: readonly PromptMessage[], { window }: CallModelInput): string {
  const room = window === undefined ? UNKNOWN_ROOM : window * SUMMARY_SHARE * CHARACTERS_PER_TOKEN;
  const whole = renderForCompaction(messages);
  if (whole.length <= room) return whole;
  const each = Math.max(LEAST_CHARACTERS, Math.floor(room / messages.length / 2));
  return renderForCompaction(
    messages.map((message) => ({ ...message, text: headAndTail(message.text, each) })),
  );
}

/** Three quarters from the beginning, the rest from the end. */
function headAndTail(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const head = Math.floor(characters * 0.75);
  const left = text.length - characters;
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(head - characters)}`;
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
