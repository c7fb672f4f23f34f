import type { z } from 'zod';
import type { Json } from '../core/json.js';

/**
 * The state that a node's function reads. A required field without a value throws when it is read.
 */
export type GraphStateOf<Shape extends z.ZodObject> = Readonly<z.output<Shape>>;

/** What a node's function may change: fields in the input form of the schema. */
export type GraphPatchOf<Shape extends z.ZodObject> = Partial<z.input<Shape>>;

/** The names of the state's fields. */
export type GraphFieldOf<Shape extends z.ZodObject> = Extract<keyof z.output<Shape>, string>;

/** The fields whose type can hold at least one value of a kind, such as a text or a list. */
export type GraphFieldTaking<Shape extends z.ZodObject, Kind> = {
  [Field in GraphFieldOf<Shape>]: unknown extends z.input<Shape>[Field]
    ? Field
    : [Extract<z.input<Shape>[Field], Kind>] extends [never]
      ? never
      : Field;
}[GraphFieldOf<Shape>];

/** The fields whose type takes every value of a type; all fields if that type is any JSON. */
export type GraphFieldHolding<Shape extends z.ZodObject, Value> = [Json] extends [Value]
  ? GraphFieldOf<Shape>
  : {
      [Field in GraphFieldOf<Shape>]: [Value] extends [z.input<Shape>[Field]] ? Field : never;
    }[GraphFieldOf<Shape>];
