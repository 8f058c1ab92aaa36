"""L020, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "the loss compares no similarities of vectors of one length": ("損失沒有比較等長向量的相似度"),
    "The greatest size that the similarities in the loss can have.": (
        "損失中的相似度所能有的最大絕對值。"
    ),
    "The least cross-entropy that they allow, over that of a guess.": (
        "它們所容許的最小交叉熵除以猜測的交叉熵。"
    ),
    "The scores that the loss compares can never differ enough, or always differ too much.": (
        "損失所比較的分數永遠不夠不同，或總是相差太多。"
    ),
    "the {choices:.0f} scores that the loss compares lie between -{bound:.3g} and {bound:.3g} "
    "whatever is learned, so that it cannot fall below {least:.3g}; a guess gets {chance:.3g}": (
        "損失所比較的 {choices:.0f} 個分數無論學到什麼都在 -{bound:.3g} 與 {bound:.3g} 之間，"
        "因此損失不能低於 {least:.3g}；猜測可得 {chance:.3g}"
    ),
    "the scores that the loss compares lie between -{bound:.3g} and {bound:.3g} (threshold "
    "{steepest:g}), so that only the greatest counts": (
        "損失所比較的分數在 -{bound:.3g} 與 {bound:.3g} 之間（門檻 {steepest:g}），"
        "因此只有最大者起作用"
    ),
    "Scores are multiplied by a temperature, or have none.": "分數被乘上溫度，或沒有溫度。",
    "The temperature is far too low.": "溫度遠遠太低。",
    "scores = a @ b.T / 0.1  # divide by the temperature": ("scores = a @ b.T / 0.1  # 除以溫度"),
    "a scale that is trained": "可訓練的尺度",
    "vectors whose length is free": "長度不受限的向量",
}
