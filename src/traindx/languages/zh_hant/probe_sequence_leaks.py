"""F011 mask-leak, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "A model that predicts the next element sees it, or padding reaches real positions.": (
        "預測下一個元素的模型看得到它，或填補（padding）影響了真實位置。"
    ),
    "no target is the next input, and no mask says what is padding": (
        "沒有任何目標是下一個輸入，也沒有遮罩指出何處是填補"
    ),
    "no output has the positions of the input": "沒有任何輸出具有輸入的各個位置",
    "outputs before position {half} of {steps} move by {leak:.2g} of their RMS when only inputs "
    "from there on are changed, though the target is the next input; it begins in `{place}` "
    "({kind})": (
        "目標是下一個輸入，但只改變第 {half} 個位置（共 {steps} 個）起的輸入，"
        "之前的輸出就變動其 RMS 的 {leak:.2g} 倍；始於 `{place}`（{kind}）"
    ),
    "The answer at a position is among what the model may look at there.": (
        "某個位置的答案，就在模型於該處看得到的內容之中。"
    ),
    "attention: F.scaled_dot_product_attention(q, k, v, is_causal=True), or attn_mask="
    "torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)\n"
    "convolution: F.pad(x, (kernel_size - 1, 0)) and padding=0\n"
    "RNN: bidirectional=False": (
        "注意力：F.scaled_dot_product_attention(q, k, v, is_causal=True)，或 attn_mask="
        "torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)\n"
        "卷積：F.pad(x, (kernel_size - 1, 0)) 並設 padding=0\n"
        "RNN：bidirectional=False"
    ),
    "a target that is not the next input": "目標並非下一個輸入",
    "positions that the loss ignores": "損失所忽略的位置",
    "outputs for real positions move by {leak:.2g} of their RMS when only what the mask calls "
    "padding is changed; it begins in `{place}` ({kind})": (
        "只改變遮罩視為填補的部分，真實位置的輸出就變動其 RMS 的 {leak:.2g} 倍；"
        "始於 `{place}`（{kind}）"
    ),
    "The mask does not reach it, or it has another sense there.": (
        "遮罩沒有傳到該處，或在該處的意義不同。"
    ),
    "Give `{place}` the mask, in its own sense: of `nn.MultiheadAttention`, key_padding_mask is "
    "True where padding is; pool with (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).": (
        "把遮罩依 `{place}` 自己的意義交給它：`nn.MultiheadAttention` 的 key_padding_mask "
        "在填補處為 True；池化用 (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)。"
    ),
    "How far, of its RMS, the output at earlier positions moves when only later inputs are "
    "changed, of a model that predicts the next.": (
        "對預測下一個元素的模型，只改變較後的輸入時，較前位置的輸出變動多少（以其 RMS 計）。"
    ),
    "How far, of its RMS, the output at real positions moves when only what is masked as padding "
    "is changed.": ("只改變被遮為填補的部分時，真實位置的輸出變動多少（以其 RMS 計）。"),
}
