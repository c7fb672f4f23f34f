// Represents a bank that makes one payment per reference.
const payments = new Map<string, { readonly order: number; readonly euros: number }>();

export const bank = {
  /** Refunds an order. The same reference again is the same refund. */
  refund(reference: string, payment: { readonly order: number; readonly euros: number }): string {
    const { order, euros } = payments.get(reference) ?? payment;
    payments.set(reference, { order, euros });
    return `refunded ${euros} € for order ${order}`;
  },
};
