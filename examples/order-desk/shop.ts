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

/**
 * Maps the reference of a refund to its fence, Unix time in ms: anything issued before it is
 * refused.
 */
const fences = new Map<string, number>();

export const orders = {
  find: (id: number): Order | undefined => table.get(id),

  /** Refunds an order. Throws if `issued`, Unix time in ms, is before the fence of the reference. */
  refund(id: number, payment: { euros: number; reference: string; issued: number }): string {
    const order = table.get(id);
    if (order === undefined) throw new Error(`id: expected an existing order, got ${id}`);
    if (payment.issued < (fences.get(payment.reference) ?? 0)) {
      throw new Error(`refund ${payment.reference} was issued before its fence`);
    }
    if (order.refundedUnder !== null) throw new Error(`order ${id} is already refunded`);
    table.set(id, { ...order, refundedUnder: payment.reference });
    return `refunded ${payment.euros} € for order ${id}`;
  },

  /**
   * Returns whether the bank has made a refund under a reference, and sets its fence to `before`. A real
   * bank does both in one transaction, so a refund that is still on its way cannot happen later.
   */
  fenceRefund(reference: string, before: number) {
    fences.set(reference, Math.max(before, fences.get(reference) ?? 0));
    const found = [...table.values()].find((order) => order.refundedUnder === reference);
    return found === undefined
      ? ({ happened: false } as const)
      : ({ happened: true, result: `order ${found.id} was refunded` } as const);
  },
};
