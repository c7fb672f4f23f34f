import { isObject } from '../../../core/text/json.js';
import type { EmitDelta } from '../../model.js';
import type { ReplySource, StreamAssembly } from '../../wire/api.js';
import { toText } from '../../wire/content.js';
import { providerError } from '../../wire/errors.js';
import { createReplyMeter, type ReplyMeter } from '../../wire/reply-limits.js';
import { createComputerArguments, NO_HANDLER, BETWEEN_MESSAGES } from './computer.js';

type Event = Record<string, unknown>;

const FINAL = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.done',
]);

/**
 * Assembles the events of a streamed response into the response that its last event holds. A
 * repeated event counts once, by its `sequence_number`. Unknown events are skipped: the last event
 * holds the whole output.
 */
export function assembleResponse(emit: EmitDelta, source: ReplySource): StreamAssembly {
  const emitter = createItemEmitter(emit);
  const meter = createReplyMeter();
  const { get, complete, list } = createOpenItems(meter);
  let final: Record<string, unknown> | undefined;
  let newest = -1;
  let isThinking = true;
  /** The items that are not complete. */
  const open = new Set<unknown>();

  const addToItem = (event: Event): void => {
    const { output_index: output } = event;
    const delta = toText(event['delta']);
    meter.text(delta);
    switch (event['type']) {
      case 'response.output_item.added':
      case 'response.output_item.done': {
        if (!isObject(event['item'])) return;
        const item = event['item'];
        get(output).item = item;
        if (event['type'] === 'response.output_item.done') open.delete(output);
        else open.add(output);
        isThinking = !isContent(item);
        const call = readCall(event, source);
        if (call === undefined) return;
        emitter.call(output, call.name);
        emitter.arguments(output, complete(output, call.arguments));
        return;
      }
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        get(output).text += delta;
        return emitter.text(output, delta);
      case 'response.function_call_arguments.delta':
        get(output).text += delta;
        return emitter.arguments(output, delta);
      case 'response.function_call_arguments.done':
        return emitter.arguments(output, complete(output, toText(event['arguments'])));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return emitter.reasoning(delta);
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
      if (type === 'error') throw createFailure(event, source);
      if (!FINAL.has(toText(type))) return addToItem(event);
      const response = isObject(event['response']) ? event['response'] : {};
      final = { ...response, status: response['status'] ?? toStatus(type) };
    },
    isFinished: () => final !== undefined,
    // Without the last event, the response is complete if each of its items is.
    hasContent: () => open.size === 0 && list().some(({ item }) => isContent(item)),
    isThinking: () => isThinking,
    answer() {
      const output = final?.['output'];
      if (Array.isArray(output) && output.length > 0) return final;
      return { ...final, output: list().map(closeItem) };
    },
  };
}

function isContent({ type }: Record<string, unknown>): boolean {
  return type === 'message' || type === 'function_call';
}

function createFailure(event: Event, { headers, place }: ReplySource): Error {
  return providerError({ headers, error: event['error'] ?? event }, place);
}

function toStatus(type: unknown): string {
  const status = toText(type).slice('response.'.length);
  return status === 'done' ? 'completed' : status;
}

/**
 * Reads the available part of a call from an item's event; an action on the screen is read only
 * when complete.
 */
function readCall({ type, item }: Event, { computer = NO_HANDLER }: ReplySource) {
  if (!isObject(item)) return undefined;
  if (item['type'] === 'function_call') {
    return { name: toText(item['name']), arguments: toText(item['arguments']) };
  }
  const isDone = item['type'] === 'computer_call' && type === 'response.output_item.done';
  return isDone ? { name: computer, arguments: createComputerArguments(item) } : undefined;
}

/** Emits deltas of the reply for parts of items. */
function createItemEmitter(emit: EmitDelta) {
  const places = new Map<unknown, number>();
  let latest: unknown;
  return {
    call(output: unknown, name: string): void {
      if (places.has(output)) return;
      const index = places.size;
      places.set(output, index);
      emit({ kind: 'call', index, name, text: '' });
    },
    arguments(output: unknown, text: string): void {
      const index = places.get(output);
      if (index !== undefined && text !== '') emit({ kind: 'call', index, text });
    },
    text(output: unknown, text: string): void {
      if (text === '') return;
      const isNext = latest !== undefined && latest !== output;
      latest = output;
      emit({ kind: 'text', text: isNext ? BETWEEN_MESSAGES + text : text });
    },
    reasoning(text: string): void {
      if (text !== '') emit({ kind: 'reasoning', text });
    },
  };
}

interface OpenItem {
  item: Record<string, unknown>;
  /** The text, refusal or arguments so far. */
  text: string;
}

/** The items of a response in progress, by their `output_index`. */
function createOpenItems(meter: ReplyMeter) {
  const items = new Map<unknown, OpenItem>();

  const get = (output: unknown): OpenItem => {
    const known = items.get(output);
    if (known !== undefined) return known;
    meter.item();
    const item = { item: {}, text: '' };
    items.set(output, item);
    return item;
  };

  /** Sets the whole text of an item, and returns its end that no delta contained. */
  const complete = (output: unknown, whole: string): string => {
    const known = get(output);
    // The length is compared first: `startsWith` copies a text that was joined from parts.
    const isLonger = whole.length > known.text.length && whole.startsWith(known.text);
    const rest = isLonger ? whole.slice(known.text.length) : '';
    meter.text(rest);
    known.text += rest;
    return rest;
  };

  return { get, complete, list: () => [...items.values()] };
}

/** Completes an item from its deltas, for servers whose last event has no output. */
function closeItem({ item, text }: OpenItem): Record<string, unknown> {
  if (item['type'] === 'function_call') return { ...item, arguments: text };
  const content: readonly unknown[] = Array.isArray(item['content']) ? item['content'] : [];
  if (item['type'] !== 'message' || content.length > 0) return item;
  return { ...item, content: [{ type: 'output_text', text }] };
}
