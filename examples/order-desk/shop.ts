// Stands for the shop's database and its bank.
interface Order {
  readonly id: number;
  readonly item: string;
  readonly euros: number;
  readonly refundedUnder: string | null;
}

const table = new Map<number, Order>([
  [17, { id: 17, item: 'a kettle', euros: 40, refundedUnder: null }],
  [18, { id: 18, item: 'two cups', euros: 15, refundedUnder: null }],
]);

export const orders = {
  find: (id: number): Order | undefined => table.get(id),

  refund(id: number, payment: { euros: number; reference: string }): string {
    const order = table.get(id);
    if (order === undefined) throw new Error(`there is no order ${id}`);
    if (order.refundedUnder !== null) throw new Error(`order ${id} is paid back already`);
    table.set(id, { ...order, refundedUnder: payment.reference });
    return `paid ${payment.euros} € back for order ${id}`;
  },

  /** What the bank knows of a reference. */
  refundUnder(reference: string) {
    const found = [...table.values()].find((order) => order.refundedUnder === reference);
    return found === undefined
      ? ({ happened: false } as const)
      : ({ happened: true, result: `order ${found.id} was paid back` } as const);
  },
};
