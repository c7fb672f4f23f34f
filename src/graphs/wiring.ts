import type { NodeSpec } from './node-spec.js';

type IsSingle<Names extends string> = {
  [Name in Names]: [Exclude<Names, Name>] extends [never] ? true : false;
}[Names];

type Table<Exits extends string, Optional extends string, Target> = {
  readonly [Name in Exits]: Target;
} & { readonly [Name in Optional]?: Target };

/** Where a node's exits lead: the target itself if there is one exit, else a table. */
export type NodeEdges<Spec, Target> =
  Spec extends NodeSpec<infer Exits, infer Optional>
    ? string extends Exits
      ? // Unknown exits: another error of the graph has been reported, and needs no second one here.
        Target | { readonly [Name in string]?: Target }
      : IsSingle<Exits> extends true
        ? Target | Table<Exits, Optional, Target>
        : Table<Exits, Optional, Target>
    : never;

/** The second step of a graph: where it starts, and where each exit leads. */
export interface GraphWiring<Nodes> {
  readonly start: Extract<keyof Nodes, string>;
  readonly edges: {
    readonly [Name in keyof Nodes]: NodeEdges<Nodes[Name], Extract<keyof Nodes, string> | 'end'>;
  };
}
