"""The layers of `traindx.norm.modules`: what they warn of, and report."""

MESSAGES: dict[str, str] = {
    "{layer} has eps={eps}: where a variance is smaller, it gives NaN. "
    "Give an eps that is not negative.": (
        "{layer} 的 eps={eps}：變異數較小之處會得到 NaN。請給非負的 eps。"
    ),
    "{layer} has momentum={momentum}: its running variance can become negative, and evaluation "
    "NaN. Give a momentum from 0 to 1.": (
        "{layer} 的 momentum={momentum}：移動變異數可能變成負的，評估時得到 NaN。"
        "請給 0 到 1 的 momentum。"
    ),
    "{layer} has momentum=None, which torch reads as 0: its running statistics are never updated. "
    "Give a momentum.": (
        "{layer} 的 momentum=None 被 torch 讀作 0：移動統計量永不更新。請給一個 momentum。"
    ),
    "SyncBatchNorm needs its input on an accelerator; it is on the CPU.": (
        "SyncBatchNorm 的輸入須在加速器上；它在 CPU 上。"
    ),
    "`{layer}` has left {batches} of its batches out of its running statistics, which they would "
    "have made infinite or NaN.": (
        "`{layer}` 有 {batches} 個批次未納入移動統計量，否則統計量會變成無限大或 NaN。"
    ),
}
