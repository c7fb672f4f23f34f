import { isObject } from '../../../core/json.js';
import type { Tell } from '../../deltas.js';
import type { StreamAssembly } from '../api.js';
import { providerError } from '../errors.js';
import { computerArguments, NO_HANDLER } from '../computer.js';
import type { ReplySource } from '../chat/reply.js';
import { BETWEEN_MESSAGES } from './items.js';
import { createReplyMeter, type ReplyMeter } from '../../reply-limits.js';

/** An item while it comes. */
interface Growing {
  item: Record<string, unknown>;
  /** Text, refusal or arguments so far. */
  said: string;
}

type Event = Record<string, unknown>;

const FINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What has come of an item whose end never came; only for servers whose last event has no output. */
function itemOf({ item, said }: Growing): Record<string, unknown> {
  if (item['type'] === 'function_call') return { ...item, arguments: said };
  const content: readonly unknown[] = Array.isArray(item['content']) ? item['content'] : [];
  if (item['type'] !== 'message' || content.length > 0) return item;
  return { ...item, content: [{ type: 'output_text', text: said }] };
}

function failureIn(event: Event, { headers, place }: ReplySource): Error {
  return providerError({ headers, error: event['error'] ?? event }, place);
}

/** A call as far as this event of its item tells it; an action on the screen comes whole. */
function callIn({ type, item }: Event, { computer = NO_HANDLER }: ReplySource) {
  if (!isObject(item)) return undefined;
  if (item['type'] === 'function_call') {
    return { name: stringOf(item['name']), arguments: stringOf(item['arguments']) };
  }
  const isWhole = item['type'] === 'computer_call' && type === 'response.output_item.done';
  return isWhole ? { name: computer, arguments: computerArguments(item) } : undefined;
}

/** Tells what comes, in the words of the reply that will be made of it. */
function createTeller(tell: Tell) {
  const places = new Map<unknown, number>();
  let speaking: unknown;
  return {
    call(output: unknown, name: string): void {
      if (places.has(output)) return;
      const index = places.size;
      places.set(output, index);
      tell({ type: 'call', index, name });
    },
    arguments(output: unknown, text: string): void {
      const index = places.get(output);
      if (index !== undefined && text !== '') tell({ type: 'call', index, arguments: text });
    },
    text(output: unknown, text: string): void {
      if (text === '') return;
      const isNext = speaking !== undefined && speaking !== output;
      speaking = output;
      tell({ type: 'text', text: isNext ? BETWEEN_MESSAGES + text : text });
    },
    reasoning(text: string): void {
      if (text !== '') tell({ type: 'reasoning', text });
    },
  };
}

/** The items of a response while they come, by their places. */
function createGrowing(meter: ReplyMeter) {
  const growing = new Map<unknown, Growing>();

  const at = (output: unknown): Growing => {
    const known = growing.get(output);
    if (known !== undefined) return known;
    meter.item();
    const begun = { item: {}, said: '' };
    growing.set(output, begun);
    return begun;
  };

  /** The rest of what an item says, where pieces of it have not come. */
  const complete = (output: unknown, whole: string): string => {
    const known = at(output);
    // Compared by length first: to look into a text that was joined of pieces is to copy it.
    const isMore = whole.length > known.said.length && whole.startsWith(known.said);
    const rest = isMore ? whole.slice(known.said.length) : '';
    meter.text(rest);
    known.said += rest;
    return rest;
  };

  return { at, complete, items: () => [...growing.values()] };
}

/**
 * Gathers the events of a streamed response into the response that its last event holds. An event that
 * comes twice counts once, by its `sequence_number`. Events of kinds that nobody here knows are passed
 * over: the last event has all that came of them.
 */
export function assembleResponse(tell: Tell, source: ReplySource): StreamAssembly {
  const teller = createTeller(tell);
  const meter = createReplyMeter();
  const { at, complete, items } = createGrowing(meter);
  let final: Record<string, unknown> | undefined;
  let newest = -1;
  let isThinking = true;

  const grow = (event: Event): void => {
    const { output_index: output } = event;
    const delta = stringOf(event['delta']);
    meter.text(delta);
    switch (event['type']) {
      case 'response.output_item.added':
      case 'response.output_item.done': {
        if (!isObject(event['item'])) return;
        const item = event['item'];
        at(output).item = item;
        isThinking = item['type'] !== 'message' && item['type'] !== 'function_call';
        const call = callIn(event, source);
        if (call === undefined) return;
        teller.call(output, call.name);
        teller.arguments(output, complete(output, call.arguments));
        return;
      }
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        at(output).said += delta;
        return teller.text(output, delta);
      case 'response.function_call_arguments.delta':
        at(output).said += delta;
        return teller.arguments(output, delta);
      case 'response.function_call_arguments.done':
        return teller.arguments(output, complete(output, stringOf(event['arguments'])));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return teller.reasoning(delta);
      default:
    }
  };

  return {
    add(event) {
      meter.event();
      if (!isObject(event) || final !== undefined) return;
      const { type, sequence_number: number } = event;
      if (typeof number === 'number') {
        if (number <= newest) return;
        newest = number;
      }
      if (type === 'error') throw failureIn(event, source);
      if (!FINAL.has(stringOf(type)) || !isObject(event['response'])) return grow(event);
      final = { ...event['response'], status: event['response']['status'] ?? statusOf(type) };
    },
    isFinished: () => final !== undefined,
    // Its last event alone says how it ended.
    hasContent: () => false,
    isThinking: () => isThinking,
    answer() {
      const output = final?.['output'];
      if (Array.isArray(output) && output.length > 0) return final;
      return { ...final, output: items().map(itemOf) };
    },
  };
}

function statusOf(type: unknown): string {
  return stringOf(type).slice('response.'.length);
}
