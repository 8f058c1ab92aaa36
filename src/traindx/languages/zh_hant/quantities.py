"""What the quantities mean: their units, and what each entry of a vector stands for."""

MESSAGES: dict[str, str] = {
    "{words} of {what}.": "{what}的{words}。",
    "the first floating-point tensor given to the model": "傳給模型的第一個浮點張量",
    "the module's output": "模組輸出",
    "the gradient of the loss with respect to the module's output": "損失對模組輸出的梯度",
    "the parameter's gradient as backward leaves it, loss scale divided out": (
        "參數梯度（backward 留下的值，已除去 loss scale）"
    ),
    "the gradient the optimizer was given, where it differs (clipped)": (
        "最佳化器實際收到的梯度（僅在有所不同時，例如經過裁剪）"
    ),
    "the parameter's gradient": "參數梯度",
    "the parameter": "參數",
    "Mean": "平均值",
    "Variance (unbiased)": "變異數（不偏）",
    "Standard deviation (biased)": "標準差（偏估計）",
    "Root mean square": "均方根",
    "Euclidean norm": "歐氏範數",
    "Least element, among stretches if there are many and no compiled library,": (
        "最小元素（元素很多而沒有編譯好的函式庫時，取自若干區段）"
    ),
    "Greatest element, among stretches if there are many and no compiled library,": (
        "最大元素（元素很多而沒有編譯好的函式庫時，取自若干區段）"
    ),
    "Fraction of exact zeros in a sample, taken of inputs and outputs": (
        "樣本中恰為 0 的比例（只取自輸入與輸出）"
    ),
    "Number of elements": "元素個數",
    "Number of NaN and infinite elements": "NaN 與無限大元素的個數",
    "as the tensor's": "與張量相同",
    "as the tensor's, squared": "張量單位的平方",
    "as the user's": "由使用者決定",
    "as the parameter's": "與參數相同",
    "samples": "樣本",
    "elements": "元素",
    "0 or 1": "0 或 1",
    "standard deviations": "標準差",
    "The mean of the scalars given to backward in the step.": (
        "這一步中所有呼叫 backward 的純量之平均。"
    ),
    "Learning rate of the optimizer's first group.": "最佳化器第一個參數群組的學習率。",
    "Wall time from the end of the last step to this one's.": (
        "從上一步結束到這一步結束的實際時間。"
    ),
    "First dimension of the model's first tensor argument.": "模型第一個張量引數的第一個維度。",
    "Backward passes in the step.": "這一步中的反向傳播次數。",
    "RMS of the parameter before the step, over a sample of a few thousand entries.": (
        "參數在這一步之前的 RMS，取數千個元素的樣本。"
    ),
    "RMS of the parameter's change in the step over its RMS before, over the same sample; "
    "infinite where the parameter was zero.": (
        "參數在這一步的變化量 RMS 除以先前的 RMS，取自同一樣本；參數原為 0 時為無限大。"
    ),
    "1 if a trainable parameter's gradient is None at the step.": (
        "可訓練參數的梯度在這一步為 None 時為 1。"
    ),
    "1 if the optimizer's gradient in the measured step was added onto that of the step before "
    "because nothing cleared it, else 0; a fraction where it stepped several times in it.": (
        "若梯度未被清除，使量測步的梯度累加在前一步的梯度之上，則為 1，否則為 0；"
        "最佳化器在其中走了多步時為比例。"
    ),
    "The model's `training` flag in its training forward.": (
        "模型在訓練前向傳播中的 `training` 旗標。"
    ),
    "A normalization's `training` flag in that forward.": (
        "正規化層在該次前向傳播中的 `training` 旗標。"
    ),
    "Updates of the running statistics in the step.": "running 統計量在這一步的更新次數。",
    "`num_batches_tracked` after the step.": "這一步之後的 `num_batches_tracked`。",
    "Weight that the initial running statistics still have, (1 - momentum)^tracked; 0 for "
    "statistics that were loaded without their counter.": (
        "初始 running 統計量仍佔的權重，即 (1 - momentum)^tracked；載入統計量而沒有計數器時為 0。"
    ),
    "RMS over channels of how far the normalized batch would move if the running statistics "
    "replaced the batch's own: sqrt(b^2 + (a - 1)^2), a = sqrt((var_b + eps)/(var_r + eps)), "
    "b = (mean_b - mean_r)/sqrt(var_r + eps). With several training passes in the step "
    "(`norm.updates` > 1) the batch's statistics are their weighted mean over these passes.": (
        "若以 running 統計量取代批次本身的統計量，正規化後的批次會移動多少，取各通道的 RMS："
        "sqrt(b^2 + (a - 1)^2)，a = sqrt((var_b + eps)/(var_r + eps))，"
        "b = (mean_b - mean_r)/sqrt(var_r + eps)。"
        "同一步有多次訓練前向傳播時（`norm.updates` > 1），批次統計量為這幾次的加權平均。"
    ),
    "RMS over channels of (var_b - var_r)/(var_r + eps): how far the variance of the batch lies "
    "from the running one as it was before the step. NaN where rounding would dominate, and "
    "without an update.": (
        "(var_b - var_r)/(var_r + eps) 在各通道的 RMS："
        "批次變異數與這一步之前的 running 變異數相差多少。"
        "捨入誤差會主導時，以及沒有更新時，為 NaN。"
    ),
    "Variance across the samples of a batch over the mean square, both averaged over up to 128 "
    "samples and about 32 entries of each: 0 where every sample gives the same output, NaN where "
    "all of it is 0. Taken in the first four measured steps, later in every fourth and at least 16 "
    "steps apart, of outputs whose first axis is known to be the batch.": (
        "批次中各樣本之間的變異數除以均方，兩者皆取至多 128 個樣本、每個樣本約 32 個元素的平均："
        "每個樣本的輸出都相同時為 0，全部為 0 時為 NaN。"
        "在前四個量測步量測，其後每四個量測步一次且至少相隔 16 步，"
        "只量測已知第一軸為批次的輸出。"
    ),
    "Fraction of a ReLU's units (channels) whose output was zero over a stretch of measured steps "
    "with at least 1,024 values of each unit from at least 64 samples. It stands at the ReLU or, "
    "where that is a function, at the module whose output goes into it or which returns what comes "
    "out. Of a ReLU that serves several layers, the worst.": (
        "ReLU 的單元（通道）中，輸出在一段量測步內始終為 0 的比例；"
        "該段至少含有每個單元 1,024 個值、來自至少 64 個樣本。"
        "記在該 ReLU 上；若 ReLU 是函式，則記在輸出送入它的模組，或回傳其結果的模組。"
        "同一個 ReLU 供多層使用時，取最差者。"
    ),
    "Values of each unit over which `units.dead_fraction` looked: samples times positions.": (
        "`units.dead_fraction` 對每個單元所看的值數：樣本數乘以位置數。"
    ),
    "What the script passed to `traindx.log`.": "程式傳給 `traindx.log` 的值。",
    "RMS over channels of the change of running_mean in the step, over the running standard "
    "deviation sqrt(running_var + eps).": (
        "running_mean 在這一步的變化量除以 running 標準差 sqrt(running_var + eps)，取各通道的 RMS。"
    ),
    "|x| from 2^e up to 2^(e+1), for e from -40 to 16; the first and last hold what is beyond": (
        "|x| 介於 2^e 與 2^(e+1) 之間，e 從 -40 到 16；頭尾兩格包含超出範圍者"
    ),
    "a channel; evenly spaced ones where there are more than 512": (
        "每項為一個通道；超過 512 個時取等距的通道"
    ),
    "Binary exponents of {what}: finite elements other than 0 in a sample of about 4,096. Taken in "
    "the first four measured steps, then about twice in every doubling.": (
        "{what}的二進位指數：約 4,096 個元素的樣本中，有限且不為 0 的元素。"
        "在前四個量測步量測，之後步數每加倍約量測兩次。"
    ),
    "{what} of each channel {when}": "各通道的{what}，{when}",
    "in the step's training batches, NaN where rounding in the buffers hides it.": (
        "取自這一步的訓練批次；緩衝區的捨入誤差使其無法得知時為 NaN。"
    ),
    "as the normalization keeps it, after the step.": "為正規化層在這一步之後所保存的值。",
    "{what} Of up to 16 queries in up to 16 heads of 2 samples, computed again from what autograd "
    "keeps of every attention with a graph; at the innermost module that it was called in. After "
    "the first four measured steps at least 8 steps apart.": (
        "{what}取 2 個樣本、至多 16 個注意力頭（head）中至多 16 個 query，"
        "由 autograd 為每個帶有計算圖的注意力所保留的內容重新算出；位於呼叫它的最內層模組。"
        "前四個量測步之後，至少相隔 8 步。"
    ),
    "Mean entropy of attention's weights over the logarithm of the keys that the mask lets "
    "through: 1 where all are weighted alike, 0 where one takes all (collapse, Zhai et al. 2023). "
    "NaN where no query has a choice.": (
        "注意力權重的平均熵，除以遮罩允許的 key 數之對數：所有 key 權重相同時為 1，"
        "由單一 key 獨佔時為 0（熵崩塌，Zhai et al. 2023）。沒有任何 query 可選擇時為 NaN。"
    ),
    "The same of the head with the lowest.": "同上，取最低的那個注意力頭。",
    "Least logit of a key that the mask lets through.": "遮罩允許的 key 之最小 logit。",
    "Greatest logit of a key that the mask lets through: the scaled product of query and key, "
    "before any bias. Training diverges where it goes on growing (Dehghani et al. 2023).": (
        "遮罩允許的 key 之最大 logit：query 與 key 縮放後的內積，尚未加上任何偏置。"
        "若持續增大，訓練便會發散（Dehghani et al. 2023）。"
    ),
}
