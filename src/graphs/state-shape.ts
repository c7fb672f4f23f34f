import type { z } from 'zod';

/**
 * The state that a node's function reads. A required field without a value throws when it is read.
 */
export type GraphStateOf<Shape extends z.ZodObject> = Readonly<z.output<Shape>>;

/** What a node's function may change: fields in the input form of the schema. */
export type GraphPatchOf<Shape extends z.ZodObject> = Partial<z.input<Shape>>;

/** The names of the state's fields. */
export type GraphFieldOf<Shape extends z.ZodObject> = Extract<keyof z.output<Shape>, string>;
