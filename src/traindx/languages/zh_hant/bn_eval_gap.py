"""N001 bn-eval-gap."""

MESSAGES: dict[str, str] = {
    "in eval mode {far} of {norms} normalization layers are off by more than {threshold:g} "
    "standard deviations beyond the noise of sampling a batch, `{worst}` by {gap:.2f} with a noise "
    "of {noise:.2f} (median of {steps} measured steps before)": (
        "在 eval 模式下，{norms} 個正規化層中有 {far} 個的偏移，在扣除批次取樣雜訊後仍超過 "
        "{threshold:g} 個標準差，其中 `{worst}` 偏移 {gap:.2f}，雜訊為 {noise:.2f}"
        "（此前 {steps} 個量測步的中位數）"
    ),
    "The running statistics are not those of the batches seen in training.": (
        "running 統計量與訓練時各批次的統計量不符。"
    ),
    "# Before evaluating, estimate the statistics again from 100 training batches or more:\n"
    "for m in {model}.modules():\n"
    '    if hasattr(m, "reset_running_stats"):\n'
    "        m.reset_running_stats()\n"
    "        m.momentum = None\n"
    "{model}.train()\n"
    "with torch.no_grad():\n"
    "    for inputs, _ in training_batches:\n"
    "        {model}(inputs)": (
        "# 評估之前，以 100 個以上的訓練批次重新估計統計量：\n"
        "for m in {model}.modules():\n"
        '    if hasattr(m, "reset_running_stats"):\n'
        "        m.reset_running_stats()\n"
        "        m.momentum = None\n"
        "{model}.train()\n"
        "with torch.no_grad():\n"
        "    for inputs, _ in training_batches:\n"
        "        {model}(inputs)"
    ),
    "dropout": "dropout",
    "one odd batch": "單獨一個異常批次",
    "sampling noise": "取樣雜訊",
}
