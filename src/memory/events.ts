import type { RawEvent } from '../history/history-event.js';

/** The namespace of all runs in memory. */
export const NAMESPACE = 'default';

type AttributesKey = Extract<keyof RawEvent, `${string}EventAttributes`>;

/** The kind of an event: the name of its attributes, such as `timerFired`. */
export type EventKind = AttributesKey extends `${infer Kind}EventAttributes` ? Kind : never;

/** The attributes of an event of this kind. */
export type AttributesOf<K extends EventKind> = NonNullable<RawEvent[`${K}EventAttributes`]>;

/** Returns the kind of an event; null for one without attributes. */
export function kindOf(event: RawEvent): EventKind | null {
  for (const key of Object.keys(event)) {
    if (!key.endsWith('EventAttributes')) continue;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that is what the key names
    return key.slice(0, -'EventAttributes'.length) as EventKind;
  }
  return null;
}

/** Returns the id of an event. */
export function idOf({ eventId }: RawEvent): number {
  return Number(eventId ?? 0);
}

const typeNames = new Map<string, string>();

/** Returns the name of an event's type, such as `EVENT_TYPE_TIMER_FIRED` for `timerFired`. */
export function typeName(kind: string): string {
  const known = typeNames.get(kind);
  if (known !== undefined) return known;
  const words = kind.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  const name = `EVENT_TYPE_${words}`;
  typeNames.set(kind, name);
  return name;
}
