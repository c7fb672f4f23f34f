// Represents the shop's database and its bank.
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
    if (order === undefined) throw new Error(`id: expected an existing order, got ${id}`);
    if (order.refundedUnder !== null) throw new Error(`order ${id} is already refunded`);
    table.set(id, { ...order, refundedUnder: payment.reference });
    return `refunded ${payment.euros} € for order ${id}`;
  },

  /**
   * Returns whether the bank has made a refund under a reference. With a real bank, answer
   * `happened: false` only if the refund can no longer happen.
   */
  refundUnder(reference: string) {
    const found = [...table.values()].find((order) => order.refundedUnder === reference);
    return found === undefined
      ? ({ happened: false } as const)
      : ({ happened: true, result: `order ${found.id} was refunded` } as const);
  },
};
